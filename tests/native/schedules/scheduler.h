// Scheduler: threads of which one runs at a time, chosen before each step that others can see; and a clock of its own.
//
// The threads are fibers. A step is enabled or not: one that locks a mutex is enabled while the mutex is free. Where no
// step is, time passes. Reads of the storage end as steps do. One schedule each; one thread of the system.
#pragma once

#include "tests/native/schedules/choices.h"
#include "tests/native/schedules/fiber.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace penstock::schedules {

using Nanoseconds = std::int64_t;
constexpr Nanoseconds kForever = INT64_MAX;

/// A thread, as the scheduler sees it.
struct Thread {
  int id = 0;
  std::string name;
  std::function<void()> body;
  std::unique_ptr<Fiber> fiber;
  Step step;
  bool is_ready = false;  // it was notified, or its read ended
  bool is_late = false;   // its time was over
  bool has_ended = false;
  Nanoseconds until = kForever;  // it waits or sleeps
};

/// While one lives, what is looked at is no step: for checks.
class Looking;

/// Something that ends by itself at some time: a read.
class Pending {
 public:
  virtual ~Pending() = default;
  virtual void end() = 0;
  [[nodiscard]] virtual const void* object() const = 0;
};

class Scheduler {
 public:
  struct Options {
    bool traces = false;        // keeps a line for each step
    bool is_timeless = false;   // no time passes while any step is enabled, and none in it
    Nanoseconds step_time = 0;  // of each step
    unsigned most_steps = 400'000;
  };

  Scheduler(Choices& choices, const Options& options) : choices_(choices), options_(options) {}
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  /// The one that runs the caller; null: none does.
  static Scheduler* present() noexcept { return present_; }

  /// Runs `main` as a thread, and all threads to their ends. After a failure they are left as they are.
  void run(std::function<void()> main);
  /// Empty: none.
  [[nodiscard]] const std::string& failure() const noexcept { return failure_; }
  [[nodiscard]] const std::vector<std::string>& trace() const noexcept { return trace_; }
  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }

  // --- of the threads

  /// Called before what others can see: returns when it is this thread's turn.
  void step(Step::Kind kind, const void* object);
  /// Waits until is_ready, or to the end of its time: false then.
  bool wait(Step::Kind kind, const void* object, Nanoseconds until = kForever);
  void sleep(Nanoseconds time);
  Thread& spawn(std::string name, std::function<void()> body);
  void join(const Thread& thread);
  /// Ends the schedule.
  [[noreturn]] void fail(const std::string& why);

  [[nodiscard]] Thread& self() noexcept { return *self_; }
  [[nodiscard]] Nanoseconds now() const noexcept { return now_; }
  void pass(Nanoseconds time) noexcept { now_ += time; }
  Choices& choices() noexcept { return choices_; }
  [[nodiscard]] bool is_timeless() const noexcept { return options_.is_timeless; }
  void add(Pending& pending);
  /// A line of the trace.
  void note(const std::string& text);
  [[nodiscard]] bool traces() const noexcept { return options_.traces; }
  [[nodiscard]] const std::vector<std::unique_ptr<Thread>>& threads() const noexcept { return threads_; }

  /// Called where no thread can go on before storage or time does: sees whether that is right.
  std::function<void()> at_rest;
  /// Called after each read that ended.
  std::function<void()> at_read;

 private:
  friend class Looking;
  struct Event {
    int id;
    Pending* pending;
  };

  void go_on();
  Thread& next();
  bool is_enabled(const Thread& thread) const;
  void list_turns();
  void let_time_pass();
  void end_read(int id);
  void end_thread();
  void record(const std::string& who, const Step& step);
  std::string name_of(const void* object);

  static Scheduler* present_;

  Choices& choices_;
  const Options options_;
  Fiber root_;
  Thread* self_ = nullptr;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<Event> events_;
  int next_event_ = kStorage;
  std::vector<Turn> turns_;
  Nanoseconds now_ = 1'000'000'000;
  std::uint64_t steps_ = 0;
  std::size_t ended_ = 0;
  std::string failure_;
  std::vector<std::string> trace_;
  std::vector<const void*> objects_;  // in the order in which the trace met them
};

class Looking {
 public:
  Looking() : scheduler_(std::exchange(Scheduler::present_, nullptr)) {}
  ~Looking() { Scheduler::present_ = scheduler_; }
  Looking(const Looking&) = delete;
  Looking& operator=(const Looking&) = delete;

 private:
  Scheduler* const scheduler_;
};

}  // namespace penstock::schedules
