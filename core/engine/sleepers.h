// Sleepers: the engine's threads that have nothing to do. With the engine's mutex held, but for notify().
#pragma once

#include "core/base/sync.h"

#include <mutex>

namespace penstock {

class Sleepers {
 public:
  explicit Sleepers(unsigned threads) : threads_(threads) {}

  /// The calling thread sleeps until it is woken or all are dismissed.
  void sleep(std::unique_lock<sync::Mutex>& lock) {
    ++asleep_;
    woken_up_.wait(lock, [&] { return woken_ > 0 || dismissed_; });
    --asleep_;
    if (woken_ > 0) --woken_;
  }
  /// One more thread, if one sleeps and fewer than `most` are awake. True: notify() after unlocking, since the woken
  /// thread needs the mutex.
  bool wake(unsigned most) noexcept {
    if (asleep_ == woken_ || awake() >= most) return false;
    ++woken_;
    return true;
  }
  void notify() { woken_up_.notify_one(); }
  /// No thread sleeps any more.
  void dismiss() {
    dismissed_ = true;
    woken_up_.notify_all();
  }

  [[nodiscard]] bool dismissed() const noexcept { return dismissed_; }
  [[nodiscard]] bool all_asleep() const noexcept { return asleep_ == threads_ && woken_ == 0; }
  [[nodiscard]] unsigned awake() const noexcept { return threads_ - asleep_ + woken_; }

 private:
  const unsigned threads_;
  sync::Condition woken_up_;
  unsigned asleep_ = 0;  // threads in sleep() …
  unsigned woken_ = 0;   // … and how many of them are on their way
  bool dismissed_ = false;
};

}  // namespace penstock
