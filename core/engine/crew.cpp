#include "core/engine/crew.h"

#include <algorithm>

namespace penstock {
namespace {
// A consumer that is away for longer is at work of its own: it may be asleep, and its core free. A shorter time is what
// a loop without work takes between two batches.
constexpr auto kAway = std::chrono::microseconds(200);
// Below the first an alarm is no better than a call; above the second a call costs nothing that counts.
constexpr auto kFastest = std::chrono::microseconds(100);
constexpr auto kSlowest = std::chrono::seconds(1);
constexpr unsigned kMostInVain = 3;  // the consumer has stopped: it calls when it goes on
}  // namespace

void Crew::sleep(std::unique_lock<std::mutex>& lock, std::size_t batches) {
  const auto is_called = [&] { return woken_ > 0 || dismissed_; };
  const bool even = batches > 0 && pace_ >= kFastest;
  ++asleep_;
  if (even && !alarm_ && in_vain_ < kMostInVain) {
    alarm_ = true;
    ++in_vain_;
    called_.wait_for(lock, std::min<std::chrono::nanoseconds>(pace_ * batches, kSlowest), is_called);
    alarm_ = false;
  } else {
    called_.wait(lock, is_called);
  }
  --asleep_;
  if (woken_ > 0) --woken_;
}

void Crew::consumer_takes() {
  const auto now = std::chrono::steady_clock::now();
  const std::chrono::nanoseconds since = now - took_at_;
  took_at_ = now;
  if (since > kSlowest) {
    pace_ = {};  // the first, or one after a pause
  } else {
    pace_ = pace_.count() == 0 ? since : (7 * pace_ + since) / 8;
  }
}

bool Crew::call() {
  if (asleep_ == woken_ || awake() >= most_awake()) return false;
  ++woken_;
  return true;
}

void Crew::dismiss() {
  dismissed_ = true;
  called_.notify_all();
}

void Crew::consumer_leaves() {
  inside_ = false;
  if (helps_) left_at_ = std::chrono::steady_clock::now();
}

unsigned Crew::beside_consumer() const noexcept {
  return threads_ < cores_ ? threads_ : std::max(cores_, 2U) - 1;
}

unsigned Crew::most_awake() const {
  if (!helps_ || threads_ < cores_) return threads_;
  if (!inside_ && std::chrono::steady_clock::now() - left_at_ > kAway) return threads_;
  return beside_consumer();
}

}  // namespace penstock
