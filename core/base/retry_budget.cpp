#include "core/base/retry_budget.h"

#include <algorithm>
#include <limits>

namespace penstock {
namespace {

using std::chrono::nanoseconds;

constexpr nanoseconds kLeast = std::chrono::seconds(1);
constexpr int kLeastShare = 4;  // … or one in so many of the deadline
constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max() / 2;

RetryBudget*& of_thread() noexcept {
  thread_local RetryBudget* budget = nullptr;
  return budget;
}

std::int64_t ns_of(RetryBudget::Clock::time_point time) noexcept {
  return std::chrono::duration_cast<nanoseconds>(time.time_since_epoch()).count();
}

}  // namespace

nanoseconds RetryBudget::left(nanoseconds deadline) const noexcept {
  const nanoseconds spent(spent_ns_.load(std::memory_order_relaxed));
  return std::max(deadline - std::min(spent, deadline), std::min(deadline / kLeastShare, kLeast));
}

void RetryBudget::answered(Clock::time_point began, bool has_failed, Clock::time_point now) noexcept {
  const std::int64_t at = ns_of(now);
  const std::int64_t since = std::max(ns_of(began), last_good_ns_.exchange(at, std::memory_order_relaxed));
  if (has_failed && since < at) spent_ns_.fetch_add(at - since, std::memory_order_relaxed);
}

void RetryBudget::give_up(const std::exception_ptr& why, Clock::time_point now) noexcept {
  spent_ns_.store(kAll, std::memory_order_relaxed);
  if (has_failed_.exchange(true, std::memory_order_relaxed)) return;
  failure_ = why;
  given_up_ns_.store(ns_of(now), std::memory_order_relaxed);
  has_failure_.store(true, std::memory_order_release);
}

std::exception_ptr RetryBudget::failure() const noexcept {
  return others_ == Others::Fail ? refusal({}) : nullptr;
}

std::exception_ptr RetryBudget::refusal(Clock::time_point now) const noexcept {
  if (!has_failure_.load(std::memory_order_acquire)) return nullptr;
  const std::int64_t since =
      std::max(given_up_ns_.load(std::memory_order_relaxed), last_good_ns_.load(std::memory_order_relaxed));
  const bool still_tries = others_ == Others::TryOnce && ns_of(now) <= since + nanoseconds(kGrace).count();
  return still_tries ? nullptr : failure_;
}

void RetryBudget::reset() noexcept {
  spent_ns_.store(0, std::memory_order_relaxed);
  last_good_ns_.store(0, std::memory_order_relaxed);
  has_failure_.store(false, std::memory_order_relaxed);
  has_failed_.store(false, std::memory_order_relaxed);
  failure_ = nullptr;
}

RetryBudget* RetryBudget::present() noexcept {
  return of_thread();
}

RetryBudget::Operation::Operation(RetryBudget& budget, bool is_apart) noexcept : outer_(of_thread()) {
  if (outer_ == nullptr || is_apart) of_thread() = &budget;
}

RetryBudget::Operation::~Operation() {
  of_thread() = outer_;
}

}  // namespace penstock
