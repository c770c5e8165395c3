#include "core/crew.h"

#include <algorithm>

namespace penstock {
namespace {
// A consumer that is away for longer is at work of its own: it may be asleep, and its core free. A shorter time is what
// a loop without work takes between two batches.
constexpr auto kAway = std::chrono::microseconds(200);
}  // namespace

void Crew::sleep(std::unique_lock<std::mutex>& lock) {
  ++asleep_;
  called_.wait(lock, [&] { return woken_ > 0 || dismissed_; });
  --asleep_;
  if (woken_ > 0) --woken_;
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

unsigned Crew::most_awake() const {
  if (!helps_ || threads_ < cores_) return threads_;
  if (!inside_ && std::chrono::steady_clock::now() - left_at_ > kAway) return threads_;
  return std::max(cores_, 2U) - 1;
}

}  // namespace penstock
