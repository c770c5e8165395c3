// PicksWanted: ends the wait of a pick that nobody wants any more.
//
// An order that asks elsewhere, such as a function of Python's, may keep a thread waiting in pick(). Whoever stops or
// moves a loader may hold what the answer needs, so the wait looks at the flag that this thread was given. A scope of
// one thread.
#pragma once

#include <atomic>
#include <exception>
#include <utility>

namespace penstock {

/// The picks that were waited for are no longer wanted.
struct PicksCancelled : std::exception {
  [[nodiscard]] const char* what() const noexcept override { return "the picks are no longer wanted"; }
};

class PicksWanted {
 public:
  /// While it lives, orders that wait on this thread end with PicksCancelled soon after `cancelled` is set.
  explicit PicksWanted(const std::atomic<bool>& cancelled) noexcept : outer_(std::exchange(present(), &cancelled)) {}
  ~PicksWanted() { present() = outer_; }
  PicksWanted(const PicksWanted&) = delete;
  PicksWanted& operator=(const PicksWanted&) = delete;

  /// For orders that wait: looked at some fifty times a second.
  [[nodiscard]] static bool are_cancelled() noexcept { return present() != nullptr && *present(); }

 private:
  static const std::atomic<bool>*& present() noexcept {
    thread_local const std::atomic<bool>* flag = nullptr;
    return flag;
  }

  const std::atomic<bool>* const outer_;
};

}  // namespace penstock
