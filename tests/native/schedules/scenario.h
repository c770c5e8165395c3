// Scenario: what a schedule is run with: a loader's options, its storage, and what its consumer does.
#pragma once

#include "tests/native/core/engine/loader_fixture.h"
#include "tests/native/schedules/scheduler.h"
#include "tests/native/schedules/virtual_store.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace penstock::schedules {

/// Chances are once in so many times; 0: never.
struct Scenario {
  testing::Case setup = {};
  unsigned cores = 2;
  bool has_two_sources = false;
  bool balances = false;
  unsigned takers = 0;  // threads that finish batches
  StoreOptions store = {};
  Nanoseconds step_time = 0;

  // The consumer:
  std::size_t holds = 0;  // so many batches
  Nanoseconds patience = 50'000'000;
  Nanoseconds pause = 0;                      // at most, between two batches
  unsigned pauses = 0;                        // chance of one
  unsigned moves = 0;                         // chance that it goes to another position, or changes the batch size …
  unsigned most_moves = 0;                    // … but not more often
  unsigned leaves = 0;                        // chance that it closes the loader, or drops it, before its end …
  std::optional<unsigned> leaves_after = {};  // … or does so after so many calls of poll()
  bool closes = false;                        // then it closes it
  // What fails beside reads:
  unsigned lend_fails = 0;
  unsigned takers_fail = 0;
  unsigned threads_refused = 0;

  /// That of a random schedule.
  static Scenario of(std::uint64_t number);
  [[nodiscard]] std::string describe() const;
};

/// A small scenario of which all schedules are tried.
struct SmallCase {
  std::string name;
  Scenario scenario;
  unsigned interruptions;  // at most, of a schedule; DepthFirst::kUnbounded: any number
};
std::vector<SmallCase> small_cases();

/// Runs the scenario; what failed is the scheduler's.
void run(const Scenario& scenario, Scheduler& scheduler);

}  // namespace penstock::schedules
