// RetryBudget: how long one operation may go on failing, over all requests that it makes: a call of the user's, a
// batch, or the rows of a fetch.
//
// A request that is answered after failed attempts spends the time since it began, or since the operation's last good
// answer if that is later. So requests that fail side by side spend their time once, those one after the other their
// sum, and an operation that gets answers all the while spends next to nothing. Any thread; no locks.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>

namespace penstock {

class RetryBudget {
 public:
  using Clock = std::chrono::steady_clock;
  /// The other requests of an operation of which one was given up fail with its error. Where several batches wait for
  /// them, each that begins still has an attempt, until none of these was answered well for kGrace.
  enum class Others { Fail, TryOnce };
  static constexpr std::chrono::seconds kGrace{1};

  explicit RetryBudget(Others others = Others::Fail) noexcept : others_(others) {}

  /// The rest of `deadline` for a request that begins now: at least a second or a quarter of it, the smaller one, so
  /// that it has an attempt.
  [[nodiscard]] std::chrono::nanoseconds left(std::chrono::nanoseconds deadline) const noexcept;
  /// True once nothing is left of `deadline`: what fails now is not tried again.
  [[nodiscard]] bool is_spent(std::chrono::nanoseconds deadline) const noexcept {
    return spent_ns_.load(std::memory_order_relaxed) >= deadline.count();
  }
  /// A request that began at `began` has a good answer, after failed attempts or without any.
  void answered(Clock::time_point began, bool has_failed, Clock::time_point now) noexcept;
  /// A request was given up: nothing is left.
  void give_up(const std::exception_ptr& why, Clock::time_point now = Clock::now()) noexcept;
  /// The error with which the others fail; null: they need not.
  [[nodiscard]] std::exception_ptr failure() const noexcept;
  /// The same for a request that would begin now, which may fail though those under way go on.
  [[nodiscard]] std::exception_ptr refusal(Clock::time_point now) const noexcept;
  /// For another operation, when no request of the last one is under way.
  void reset() noexcept;

  /// The budget of the operation which this thread is in; null: each request has the whole deadline.
  [[nodiscard]] static RetryBudget* present() noexcept;

  /// While it lives, what this thread asks for is of one operation: of the outer one where there is one, unless it
  /// `is_apart`, as cleaning up is from what failed.
  class Operation {
   public:
    explicit Operation(RetryBudget& budget, bool is_apart = false) noexcept;
    ~Operation();
    Operation(const Operation&) = delete;
    Operation& operator=(const Operation&) = delete;

   private:
    RetryBudget* const outer_;
  };

 private:
  const Others others_;
  std::atomic<std::int64_t> spent_ns_{0};
  std::atomic<std::int64_t> last_good_ns_{0};  // of the clock
  std::atomic<bool> has_failed_{false};        // someone sets failure_ …
  std::atomic<bool> has_failure_{false};       // … and has
  std::atomic<std::int64_t> given_up_ns_{0};   // of the clock
  std::exception_ptr failure_;
};

}  // namespace penstock
