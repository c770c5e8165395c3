// Rows by cost: each rank finds the same, whatever reads them; the global batch and the state stay.
#include "core/engine/row_choice.h"

#include "core/job/balance.h"
#include "tests/native/core/engine/loader_fixture.h"

#include <atomic>
#include <chrono>
#include <thread>

namespace penstock::testing {
namespace {

std::uint64_t length_cost(std::uint64_t index) {
  const std::uint64_t length = MemorySource::document_length(index);
  return 2 * length * length + kDocumentsWindow * length;
}

LoaderOptions balanced(const Case& setup, CostRule rule = {}, std::uint64_t micro_batches = 1) {
  LoaderOptions options = options_of(setup);
  options.balance = BalanceOptions{{std::move(rule)}};
  options.share.micro_batches = micro_batches;
  return options;
}

CostRule given(std::uint64_t count) {
  auto costs = std::make_shared<std::vector<std::uint64_t>>();
  for (std::uint64_t i = 0; i < count; ++i) costs->push_back(i * 7919 % 101);
  return {CostRule::Kind::Given, 0, std::move(costs)};
}

// Positions of each batch, by the definition: i of the batch that begins at p stands at p + i.
std::vector<std::vector<std::uint64_t>> positions_of(const Case& setup, std::uint64_t micro, const auto& cost) {
  std::vector<std::vector<std::uint64_t>> batches;
  const std::uint64_t end = *setup.epochs * setup.count;
  for (std::uint64_t first = 0; first < end; first += setup.batch) {
    std::vector<std::uint64_t> costs;
    for (std::uint64_t p = first; p < std::min(end, first + setup.batch); ++p) costs.push_back(cost(p % setup.count));
    auto& rows = batches.emplace_back();
    const Share share{setup.rank, setup.world_size, micro};
    balance_rows(costs, share, batch_rows(setup.batch, share), rows);
    for (std::uint64_t& row : rows) row += first;
  }
  return batches;
}

void expect_rows(const Case& setup, const CostRule& rule, std::uint64_t micro, const auto& cost) {
  SCOPED_TRACE(describe(setup));
  Loader loader(balanced(setup, rule, micro));
  for (const auto& wanted : positions_of(setup, micro, cost)) {
    const auto batch = next(loader);
    ASSERT_TRUE(batch);
    ASSERT_EQ(batch->positions, wanted);
    for (std::size_t i = 0; i < wanted.size(); ++i) ASSERT_EQ(batch->picks[i].index, wanted[i] % setup.count);
    expect_whole(*batch);
  }
  EXPECT_FALSE(next(loader));
}

TEST(RowChoice, DocumentsGoByTheirLengthsOnAnyRanks) {
  for (Case& setup : cases(each(&Case::count, {500}), each(&Case::window, {0}), each(&Case::batch, {192}),
                           each(&Case::world_size, {1, 3, 64}), each(&Case::fetch, {1, 8}))) {
    setup.threads = setup.prefetch = setup.world_size > 8 ? 1 : 2;
    for (; setup.rank < setup.world_size; ++setup.rank) {
      setup.behaviour->late = setup.rank % 2 == 1;
      expect_rows(setup, {}, 1, length_cost);
    }
  }
}

TEST(RowChoice, WindowsGoByGivenCostsInPartsOfEachRank) {
  const CostRule rule = given(Case().count);
  for (const Case& setup : cases(each(&Case::batch, {12}), each(&Case::rank, {0, 1}), each(&Case::world_size, {2}),
                                 each(&Case::fetch, {1, 7}), each(&Case::lends, {false, true}))) {
    expect_rows(setup, rule, 3, [&](std::uint64_t i) { return (*rule.given)[i]; });
  }
}

TEST(RowChoice, UnevenBatchesGiveEachRankAsManyAsByTurnsAndPadTheRest) {
  const CostRule rule = given(Case().count);
  for (Case& setup : cases(each(&Case::batch, {2, 7, 11}), each(&Case::world_size, {1, 3, 5}),
                           each(&Case::fetch, {1, 7}), each(&Case::uneven, {Uneven::Pad}))) {
    for (; setup.rank < setup.world_size; ++setup.rank) {
      for (const std::uint64_t micro : {1, 2}) {
        expect_rows(setup, rule, micro, [&](std::uint64_t i) { return (*rule.given)[i]; });
        expect_restores_at_every_step(balanced(setup, rule, micro));
      }
    }
  }
}

TEST(RowChoice, TokensOfWindowsAreAllAlikeAndNothingIsReadForThem) {
  const Case setup{.batch = 6, .rank = 1, .world_size = 3};
  const CostRule rule{CostRule::Kind::Tokens, 1, nullptr};
  expect_rows(setup, rule, 1, [](std::uint64_t) { return 1; });
  Loader plain(options_of(setup));
  Loader equal(balanced(setup, rule));
  const std::uint64_t before = setup.behaviour->bytes;
  const auto turns = rest_of_run(plain);
  const std::uint64_t read = setup.behaviour->bytes - before;
  EXPECT_EQ(rest_of_run(equal), turns);
  EXPECT_EQ(setup.behaviour->bytes - before, 2 * read);
}

TEST(RowChoice, RestoreAtEveryStepRepeatsTheRest) {
  for (const Case& setup : cases(each(&Case::window, {5, 0}), each(&Case::batch, {6}), each(&Case::world_size, {2}),
                                 each(&Case::skip, {Ranges{{3, 5}}}), each(&Case::fetch, {1, 7}))) {
    expect_restores_at_every_step(balanced(setup, given(setup.count), 3));
  }
}

TEST(RowChoice, AnotherBatchSizeInTheMiddleIsBalancedToo) {
  for (const std::uint64_t fetch : {1, 7}) {
    const Case setup{.world_size = 2, .fetch = fetch};
    const CostRule rule = given(setup.count);
    Loader loader(balanced(setup, rule));
    next(loader);
    loader.set_global_batch_size(10);
    std::vector<std::uint64_t> wanted;
    balance_rows(std::span(*rule.given).subspan(4, 10), {0, 2}, 5, wanted);
    for (std::uint64_t& row : wanted) row += 4;
    const auto batch = next(loader);
    EXPECT_EQ(batch->positions, wanted);
    expect_whole(*batch);
    Loader parts(balanced(setup, rule, 2));
    EXPECT_THROW(parts.set_global_batch_size(10), Error);
  }
}

TEST(RowChoice, WhatReadingLengthsFailsWithIsTheBatchsError) {
  for (const std::uint64_t fetch : {1, 7}) {
    const Case setup{.window = 0, .fetch = fetch};
    setup.behaviour->fail_offset = 5 * 4 * 4;  // where document 5 begins
    setup.behaviour->failures = 1000;
    Loader loader(balanced(setup));
    EXPECT_EQ(next(loader)->plan.position, 0U) << "fetch " << fetch;
    EXPECT_THROW(next(loader), Error);
    setup.behaviour->failures = 0;
    EXPECT_EQ(next(loader)->plan.position, 4U) << "it is read again";
  }
}

/// Documents, and how often a length was asked for.
class LengthsSource : public MemorySource {
 public:
  explicit LengthsSource(std::uint64_t count) : MemorySource(count, 0, std::make_shared<Behaviour>()) {}
  bool plan(Row& row, unsigned round, Parts wanted, Reads& out) const override {
    if (round == 0 && wanted == Parts::None) {
      const std::uint64_t before = asked++;
      if (on_length) on_length(before);
    }
    return MemorySource::plan(row, round, wanted, out);
  }
  mutable std::atomic<std::uint64_t> asked{0};
  std::function<void(std::uint64_t asked_before)> on_length;
};

LoaderOptions balanced(const Case& setup, const std::shared_ptr<LengthsSource>& source) {
  LoaderOptions options = options_of(setup, std::make_shared<IdentityOrder>(setup.count, setup.fetch),
                                     {{source, {FieldSpec{"token", "token", {'i', 8}}}}});
  options.balance = BalanceOptions{{CostRule{}}};
  return options;
}

TEST(RowChoice, EachLengthIsReadOnceThoughRowsShareFetches) {
  for (const Case& setup : cases(each(&Case::count, {200}), each(&Case::window, {0}), each(&Case::batch, {12}),
                                 each(&Case::rank, {1}), each(&Case::world_size, {2}),
                                 each(&Case::fetch, {1, 7, 50, 200}), each(&Case::max_bytes, {1 << 20, 1 << 12}))) {
    const auto source = std::make_shared<LengthsSource>(setup.count);
    Loader loader(balanced(setup, source));
    ASSERT_EQ(rest(loader).size(), (2 * setup.count + setup.batch - 1) / setup.batch);
    EXPECT_EQ(source->asked, 2 * setup.count) << describe(setup);
  }
}

TEST(RowChoice, ReadingLengthsEndsWhenItIsCancelled) {
  const auto source = std::make_shared<LengthsSource>(5000);
  std::atomic<bool> cancelled{false};
  source->on_length = [&](std::uint64_t before) { cancelled = before == 100; };
  const RowCosts costs({source}, {CostRule{}}, {}, UINT64_MAX);
  std::vector<Pick> picks(5000);
  for (std::uint64_t i = 0; i < picks.size(); ++i) picks[i].index = i;
  std::vector<std::uint64_t> out(picks.size());
  EXPECT_THROW(costs.of(picks, out, cancelled), CostsCancelled);
  EXPECT_EQ(source->asked, 101U);
  source->on_length = nullptr;
  cancelled = false;
  costs.of(picks, out, cancelled);
  for (std::uint64_t i = 0; i < picks.size(); ++i) ASSERT_EQ(out[i], length_cost(i));
}

// A global batch of 50,000 lengths, a millisecond each: whoever waits for all of them waits for most of a minute.
TEST(RowChoice, NobodyWaitsForTheLengthsOfAGlobalBatch) {
  for (const std::uint64_t fetch : {1, 1000}) {
    for (const int way : {0, 1, 2}) {
      Case setup{.count = 50'000, .window = 0, .batch = 50'000, .world_size = 1000, .fetch = fetch};
      setup.max_bytes = std::uint64_t{1} << 26;
      const auto source = std::make_shared<LengthsSource>(setup.count);
      source->on_length = [](std::uint64_t) { std::this_thread::sleep_for(std::chrono::milliseconds(1)); };
      auto loader = std::make_unique<Loader>(balanced(setup, source));
      EXPECT_FALSE(loader->poll());
      while (source->asked < 10) std::this_thread::yield();
      if (way == 0) loader->seek(0);
      if (way < 2) loader->close();
      loader.reset();
      EXPECT_LT(source->asked, setup.count / 2);
    }
  }
}

TEST(RowChoice, PositionsByTurnsAreTheRanks) {
  Loader loader(options_of({.batch = 6, .rank = 1, .world_size = 3, .skip = {{2, 4}}}));
  EXPECT_EQ(next(loader)->positions, (std::vector<std::uint64_t>{1, 6}));
}

TEST(RowChoice, CostsOfAnotherNumberAreRefused) {
  EXPECT_NO_THROW(Loader(balanced({}, given(23))));
  EXPECT_THROW(Loader(balanced({}, given(22))), Error);
}

}  // namespace
}  // namespace penstock::testing
