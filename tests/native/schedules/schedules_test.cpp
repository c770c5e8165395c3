// The engine under schedules: random ones by their numbers, and all of small cases. One that fails is printed with the
// command that repeats it and the last lines of its trace. As it is, this is the short form of `make soak`.
#include "tests/native/schedules/choices.h"
#include "tests/native/schedules/options.h"
#include "tests/native/schedules/scenario.h"
#include "tests/native/schedules/scheduler.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace penstock::schedules {
namespace {

struct Ran {
  std::string failure;
  std::vector<std::string> trace;
  std::uint64_t steps = 0;
};

Ran run_once(const Scenario& scenario, Choices& choices, bool is_timeless, bool traces) {
  Scheduler scheduler(choices, {.traces = traces, .is_timeless = is_timeless, .step_time = scenario.step_time});
  run(scenario, scheduler);
  return {scheduler.failure(), scheduler.trace(), scheduler.steps()};
}

Ran run_random(std::uint64_t number, bool traces = false) {
  RandomChoices choices(number);
  return run_once(Scenario::of(number), choices, false, traces);
}

std::string report(const std::string& command, const Scenario& scenario, const Ran& ran) {
  const std::size_t lines = options().trace;
  const std::size_t skipped = lines == 0 ? 0 : ran.trace.size() - std::min(ran.trace.size(), lines);
  std::string text = skipped > 0 ? fmt::format("({} lines before; --trace=0 shows all)\n", skipped) : "";
  for (std::size_t i = skipped; i < ran.trace.size(); ++i) text += ran.trace[i] + "\n";
  return text + fmt::format("{}\n{} after {} steps\nagain: penstock_schedules_tests {}\n", scenario.describe(),
                            ran.failure.empty() ? "right" : "FAILS: " + ran.failure, ran.steps, command);
}

using Clock = std::chrono::steady_clock;

// Counts schedules, and says so now and then where there are many.
class Progress {
 public:
  explicit Progress(std::string name) : tried_{std::move(name), 0, 0, false} {}
  ~Progress() {
    say();
    note(tried_);
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void add(const Ran& ran, bool counts = true) {
    tried_.schedules += counts ? 1 : 0;
    tried_.steps += ran.steps;
    if (Clock::now() - said_ < std::chrono::seconds(20)) return;
    said_ = Clock::now();
    say();
  }
  void set_all() { tried_.is_all = true; }
  [[nodiscard]] std::uint64_t schedules() const { return tried_.schedules; }

 private:
  void say() const {
    const double seconds = std::chrono::duration<double>(Clock::now() - began_).count();
    fmt::print(stderr, "{}: {} schedules{}, {} steps, {:.1f} s\n", tried_.name, tried_.schedules,
               tried_.is_all ? " (all)" : "", tried_.steps, seconds);
  }

  Tried tried_;
  const Clock::time_point began_ = Clock::now();
  Clock::time_point said_ = began_;
};

TEST(Schedules, RandomOnesGiveAllBatchesAndEnd) {
  Progress progress("random");
  for (std::uint64_t number = options().first; number < options().first + options().schedules; ++number) {
    const std::string command = fmt::format("--schedule={}", number);
    note_present(command);
    const Ran ran = run_random(number);
    progress.add(ran);
    if (ran.failure.empty()) continue;
    FAIL() << report(command, Scenario::of(number), run_random(number, true));
  }
}

class SmallCases : public ::testing::TestWithParam<std::size_t> {};

TEST_P(SmallCases, AllGiveAllBatchesAndEnd) {
  const SmallCase small = small_cases()[GetParam()];
  Progress progress(fmt::format("case {}, {}", GetParam(), small.name));
  DepthFirst choices(small.interruptions);
  while (options().small == 0 || progress.schedules() < options().small) {
    note_present(fmt::format("--case={}", GetParam()));
    const Ran ran = run_once(small.scenario, choices, true, false);
    progress.add(ran, !choices.was_redundant());
    if (!ran.failure.empty()) {
      DepthFirst again(small.interruptions);
      again.replay(choices.text());
      FAIL() << report(fmt::format("--case={} --choices={}", GetParam(), choices.text()), small.scenario,
                       run_once(small.scenario, again, true, true));
    }
    if (choices.next()) continue;
    progress.set_all();
    break;
  }
}

INSTANTIATE_TEST_SUITE_P(Schedules, SmallCases, ::testing::Range<std::size_t>(0, small_cases().size()));

}  // namespace

int repeat_one() {
  const bool is_random = options().choices.empty();
  const SmallCase small = is_random ? SmallCase{} : small_cases().at(options().small_case);
  const std::uint64_t number = options().schedule.value_or(0);
  const Scenario scenario = is_random ? Scenario::of(number) : small.scenario;
  const std::string command = is_random
                                  ? fmt::format("--schedule={}", number)
                                  : fmt::format("--case={} --choices={}", options().small_case, options().choices);
  note_present(command);
  DepthFirst choices(small.interruptions);
  choices.replay(options().choices);
  const Ran ran = is_random ? run_random(number, true) : run_once(scenario, choices, true, true);
  fmt::print("{}", report(command, scenario, ran));
  return ran.failure.empty() ? 0 : 1;
}

}  // namespace penstock::schedules

int main(int count, char** arguments) {
  ::testing::InitGoogleTest(&count, arguments);
  using namespace penstock::schedules;  // NOLINT: of this function
  if (!parse_options(count, arguments)) return 2;
  catch_crashes();
  if (options().schedule || !options().choices.empty()) return repeat_one();
  const int status = RUN_ALL_TESTS();
  write_record();
  return status;
}
