// What core/base/sync.h is in this test: threads, locks, shared values and time of the Scheduler's.
//
// Outside of a schedule values are plain ones, and nothing may wait.
#pragma once

#include "tests/native/schedules/scheduler.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace penstock::sync {

using schedules::Scheduler;
using schedules::Step;

class Mutex {
 public:
  Mutex() = default;
  ~Mutex() { check(is_free(), "a mutex that is locked is destroyed"); }
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() {
    Scheduler* const scheduler = Scheduler::present();
    if (scheduler == nullptr) return;
    check(owner_ != &scheduler->self(), "a mutex is locked twice");
    scheduler->step(Step::Kind::Lock, this);
    owner_ = &scheduler->self();
  }
  void unlock() {
    if (Scheduler::present() == nullptr) return;
    check(owner_ == &Scheduler::present()->self(), "a mutex of another thread is unlocked");
    owner_ = nullptr;
  }
  [[nodiscard]] bool is_free() const noexcept { return owner_ == nullptr; }

 private:
  static void check(bool is_right, const char* wrong) {
    if (!is_right && Scheduler::present() != nullptr) Scheduler::present()->fail(wrong);
  }

  const schedules::Thread* owner_ = nullptr;
};

/// A shared value, each use of which is a step. Sequentially consistent: ThreadSanitizer looks for what is not.
template <typename T>
class Atomic : public std::atomic<T> {
  using Base = std::atomic<T>;

 public:
  Atomic() = default;
  constexpr Atomic(T value) noexcept : Base(value) {}  // NOLINT: as the standard's
  T load(std::memory_order = std::memory_order_seq_cst) const {
    step(Step::Kind::Load);
    return Base::load();
  }
  operator T() const { return load(); }  // NOLINT: as the standard's
  void store(T value, std::memory_order = std::memory_order_seq_cst) {
    step(Step::Kind::Store);
    Base::store(value);
  }
  T operator=(T value) {  // NOLINT: as the standard's
    store(value);
    return value;
  }
  T fetch_add(T more) {
    return change([&] { return Base::fetch_add(more); });
  }
  T fetch_sub(T less) {
    return change([&] { return Base::fetch_sub(less); });
  }
  T operator+=(T more) { return fetch_add(more) + more; }
  T operator-=(T less) { return fetch_sub(less) - less; }
  bool compare_exchange_weak(T& seen, T value, std::memory_order = std::memory_order_seq_cst) {
    return change([&] { return Base::compare_exchange_strong(seen, value); });
  }

 private:
  void step(Step::Kind kind) const {
    if (Scheduler::present() != nullptr) Scheduler::present()->step(kind, this);
  }
  template <typename Change>
  auto change(const Change& apply) {
    step(Step::Kind::Store);
    return apply();
  }
};

struct Clock {
  using duration = std::chrono::nanoseconds;
  using time_point = std::chrono::steady_clock::time_point;
  static time_point now() {
    return time_point(std::chrono::nanoseconds(Scheduler::present() != nullptr ? Scheduler::present()->now() : 0));
  }
};

inline void sleep_for(std::chrono::nanoseconds time) {
  Scheduler::present()->sleep(time.count());
}

class Condition {
 public:
  Condition() = default;
  ~Condition() {
    if (!waiting_.empty()) Scheduler::present()->fail("a condition that is waited for is destroyed");
  }
  Condition(const Condition&) = delete;
  Condition& operator=(const Condition&) = delete;

  template <typename Ready>
  void wait(std::unique_lock<Mutex>& lock, Ready ready) {
    while (!ready()) wait_once(lock, schedules::kForever);
  }
  template <typename Ready>
  bool wait_until(std::unique_lock<Mutex>& lock, Clock::time_point until, Ready ready) {
    while (!ready()) {
      if (!wait_once(lock, until.time_since_epoch().count())) return ready();
    }
    return true;
  }
  template <typename Ready>
  bool wait_for(std::unique_lock<Mutex>& lock, std::chrono::nanoseconds patience, Ready ready) {
    return wait_until(lock, Clock::now() + patience, ready);
  }

  /// Which one is left open.
  void notify_one() {
    Scheduler* const scheduler = Scheduler::present();
    scheduler->step(Step::Kind::Notify, this);
    if (!waiting_.empty()) let_go(scheduler->choices().pick(waiting_.size()));
  }
  void notify_all() {
    Scheduler::present()->step(Step::Kind::Notify, this);
    while (!waiting_.empty()) let_go(0);
  }

 private:
  bool wait_once(std::unique_lock<Mutex>& lock, schedules::Nanoseconds until) {
    Scheduler& scheduler = *Scheduler::present();
    schedules::Thread& self = scheduler.self();
    scheduler.step(Step::Kind::Register, this);
    self.is_ready = false;
    waiting_.push_back(&self);
    lock.unlock();
    const bool was_notified = scheduler.wait(Step::Kind::Wait, this, until);
    std::erase(waiting_, &self);
    lock.lock();
    return was_notified;
  }
  void let_go(std::size_t number) {
    waiting_[number]->is_ready = true;
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(number));
  }

  std::vector<schedules::Thread*> waiting_;
};

class Thread {
 public:
  Thread() = default;
  /// Throws std::system_error, now and then, where the test says so.
  explicit Thread(std::function<void()> body) {
    Scheduler& scheduler = *Scheduler::present();
    if (scheduler.choices().happens(refused_once_in)) {
      ++refused;
      throw std::system_error(EAGAIN, std::generic_category(), "virtual thread");
    }
    thread_ = &scheduler.spawn("thread " + std::to_string(scheduler.threads().size()), std::move(body));
  }
  Thread(Thread&& other) noexcept : thread_(std::exchange(other.thread_, nullptr)) {}
  Thread& operator=(Thread&& other) noexcept {
    std::swap(thread_, other.thread_);
    return *this;
  }
  ~Thread() {
    if (joinable()) Scheduler::present()->fail("a thread that was not joined is destroyed");
  }
  [[nodiscard]] bool joinable() const noexcept { return thread_ != nullptr; }
  void join() { Scheduler::present()->join(*std::exchange(thread_, nullptr)); }

  inline static unsigned refused_once_in = 0;
  inline static unsigned refused = 0;  // so many were

 private:
  const schedules::Thread* thread_ = nullptr;
};

}  // namespace penstock::sync
