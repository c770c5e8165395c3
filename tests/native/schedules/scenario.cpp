#include "tests/native/schedules/scenario.h"

#include <algorithm>
#include <utility>

namespace penstock::schedules {
namespace {

StoreOptions random_store(Numbers& numbers) {
  StoreOptions store;
  store.depth = numbers.one_of<std::size_t>({1, 2, 2, 3, 16});
  store.near_bytes = numbers.one_of<std::uint64_t>({0, 8, 64});
  store.misses = numbers.one_of({0U, 1U, 2U, 3U, 10U});
  store.nothing_at_hand = numbers.happens(3);
  store.cached = numbers.one_of({0U, 0U, 2U, 1U});
  store.read_time = numbers.one_of<Nanoseconds>({0, 1'000, 100'000, 20'000'000});
  if (numbers.happens(2)) return store;
  store.most_faults = numbers.one_of({1U, 2U, 5U});
  store.fails = numbers.one_of({0U, 2U, 5U, 20U, 50U});
  store.changes = numbers.one_of({0U, 0U, 2U, 1U});
  store.refuses = numbers.one_of({0U, 0U, 10U});
  store.unopened = numbers.one_of({0U, 0U, 4U});
  return store;
}

testing::Case random_setup(Numbers& numbers) {
  testing::Case setup;
  setup.count = 1 + numbers.below(20);
  setup.window = numbers.one_of<std::uint64_t>({0, 0, 2, 3, 5});
  setup.world_size = numbers.one_of<std::uint64_t>({1, 1, 1, 2, 3});
  setup.rank = numbers.below(setup.world_size);
  setup.batch = setup.world_size * (1 + numbers.below(4));
  setup.epochs = 1 + numbers.below(2);
  setup.per_epoch = numbers.happens(4);
  setup.tail = numbers.one_of({Tail::Pad, Tail::Pad, Tail::Drop, Tail::Short});
  if (numbers.happens(6)) setup.skip = {{numbers.below(setup.count), setup.count}};
  setup.fetch = numbers.one_of<std::uint64_t>({1, 2, 3, 5, 100});
  setup.threads = numbers.one_of({1U, 2U, 3U, 4U, 4U});
  setup.prefetch = static_cast<unsigned>(1 + numbers.below(5));
  setup.max_bytes = numbers.one_of<std::uint64_t>({0, 500, 3'000, 10'000, 1 << 20});
  setup.lends = numbers.happens(5);
  return setup;
}

}  // namespace

Scenario Scenario::of(std::uint64_t number) {
  Numbers numbers(number * 2 + 1);
  Scenario scenario;
  scenario.setup = random_setup(numbers);
  scenario.store = random_store(numbers);
  scenario.cores = static_cast<unsigned>(1 + numbers.below(5));
  scenario.has_two_sources = numbers.happens(5);
  scenario.balances = scenario.setup.window == 0 && numbers.happens(2);
  scenario.takers = numbers.one_of({0U, 0U, 0U, 1U, 2U});
  scenario.step_time = numbers.one_of<Nanoseconds>({0, 20, 1'000, 100'000});
  scenario.holds = numbers.one_of<std::size_t>({0, 0, 1, 3, 50});
  scenario.patience = numbers.one_of<Nanoseconds>({100'000, 50'000'000, 1'000'000'000});
  scenario.pause = numbers.one_of<Nanoseconds>({0, 1'000, 300'000, 5'000'000, 2'000'000'000});
  scenario.pauses = numbers.one_of({0U, 1U, 3U});
  scenario.moves = numbers.one_of({0U, 0U, 3U, 8U, 30U});
  scenario.most_moves = numbers.one_of({1U, 2U, 5U});
  scenario.leaves = numbers.one_of({0U, 0U, 5U, 20U});
  scenario.closes = numbers.happens(2);
  scenario.lend_fails = scenario.setup.lends ? numbers.one_of({0U, 3U, 10U}) : 0;
  scenario.takers_fail = numbers.one_of({0U, 0U, 6U});
  scenario.threads_refused = numbers.one_of({0U, 0U, 0U, 0U, 6U});
  return scenario;
}

std::string Scenario::describe() const {
  return fmt::format("{}, {} observations, {} epochs, cores {}{}{}, takers {}, depth {}, holds {}, moves {}, leaves {}",
                     testing::describe(setup), setup.count, setup.epochs.value_or(0), cores,
                     has_two_sources ? ", two sources" : "", balances ? ", balanced" : "", takers, store.depth, holds,
                     moves, leaves);
}

// --- all schedules

namespace {

Scenario small(std::uint64_t count, std::uint64_t batch, unsigned threads, unsigned prefetch) {
  Scenario scenario;
  scenario.setup.count = count;
  scenario.setup.window = 2;
  scenario.setup.batch = batch;
  scenario.setup.epochs = 1;
  scenario.setup.threads = threads;
  scenario.setup.prefetch = prefetch;
  scenario.cores = threads + 1;
  scenario.store.nothing_at_hand = true;
  return scenario;
}

Scenario with(Scenario scenario, void (*change)(Scenario&)) {
  change(scenario);
  return scenario;
}

}  // namespace

std::vector<SmallCase> small_cases() {
  constexpr unsigned kAll = DepthFirst::kUnbounded;
  std::vector<SmallCase> cases = {
      {"one row, one thread", small(1, 1, 1, 1), kAll},
      {"one row, one thread, closed while it is read",
       with(small(1, 1, 1, 1), [](Scenario& s) { s.leaves_after = 1, s.closes = true; }), kAll},
      {"one row, one thread, dropped while it is read",
       with(small(1, 1, 1, 1), [](Scenario& s) { s.leaves_after = 1; }), kAll},
      {"two batches, two threads", small(2, 1, 2, 2), 2},
      {"two batches, two threads, ring", with(small(2, 1, 2, 2), [](Scenario& s) { s.store.depth = 4; }), 2},
      {"a batch of two rows, the consumer helps",
       with(small(2, 2, 1, 1), [](Scenario& s) { s.store.nothing_at_hand = false; }), 2},
      {"a batch of two rows, the consumer misses",
       with(small(2, 2, 1, 1), [](Scenario& s) { s.store.nothing_at_hand = false, s.store.misses = 1; }), 2},
      {"a batch of two rows, two threads", with(small(2, 2, 2, 1), [](Scenario& s) { s.setup.window = 3; }), 2},
      {"documents", with(small(3, 2, 2, 2), [](Scenario& s) { s.setup.window = 0; }), 2},
      {"a fetch of two batches", with(small(4, 2, 2, 2), [](Scenario& s) { s.setup.fetch = 4; }), 2},
      {"two fetches, little memory",
       with(small(4, 1, 2, 2), [](Scenario& s) { s.setup.fetch = 2, s.setup.max_bytes = 500; }), 2},
      {"documents into lent memory",
       with(small(3, 2, 1, 2), [](Scenario& s) { s.setup.window = 0, s.setup.lends = true; }), 2},
      {"a taker", with(small(2, 2, 1, 1), [](Scenario& s) { s.takers = 1; }), 2},
      {"two takers", with(small(2, 2, 1, 1), [](Scenario& s) { s.takers = 2; }), 1},
      {"three threads", small(3, 1, 3, 3), 1},
  };
  for (unsigned polls = 1; polls < 4; ++polls) {
    Scenario scenario = small(4, 2, 2, 2);
    scenario.setup.fetch = 4;
    scenario.leaves_after = polls;
    cases.push_back({"a fetch, dropped after " + std::to_string(polls) + " polls", scenario, 2});
    scenario.setup.fetch = 1;
    scenario.closes = true;
    cases.push_back({"rows, closed after " + std::to_string(polls) + " polls", scenario, 2});
  }
  return cases;
}

}  // namespace penstock::schedules
