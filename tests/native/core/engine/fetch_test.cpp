// Rows that share fetches: the same batches as without, in fewer reads, within the memory that is allowed.
#include "core/engine/fetch.h"

#include "tests/native/core/engine/loader_fixture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace penstock::testing {
namespace {

std::vector<Seen> without_fetches(Case setup) {
  setup.fetch = 1;
  setup.behaviour = std::make_shared<Behaviour>();
  setup.threads = setup.prefetch = 1;
  Loader loader(options_of(setup));
  return rest_of_run(loader);
}

TEST(Fetch, GivesTheBatchesThatSingleRowsGive) {
  for (const std::uint64_t window : {5, 0}) {
    for (const std::uint64_t fetch : {2, 3, 8, 23, 100}) {
      for (const std::uint64_t batch : {1, 4, 6, 30}) {
        for (const bool per_epoch : {false, true}) {
          for (const bool late : {false, true}) {
            for (const bool lends : {false, true}) {
              Case setup;
              setup.window = window;
              setup.fetch = fetch;
              setup.batch = batch;
              setup.per_epoch = per_epoch;
              setup.lends = lends;
              setup.behaviour->late = late;
              setup.skip = {{5, 9}, {30, 31}};
              Loader loader(options_of(setup));
              ASSERT_EQ(rest_of_run(loader), without_fetches(setup))
                  << "window " << window << " fetch " << fetch << " batch " << batch << " late " << late;
            }
          }
        }
      }
    }
  }
}

TEST(Fetch, RanksReadTheirOwnRowsAlone) {
  for (const std::uint64_t world : {2, 3}) {
    for (std::uint64_t rank = 0; rank < world; ++rank) {
      Case setup;
      setup.batch = 6;
      setup.rank = rank;
      setup.world_size = world;
      setup.fetch = 8;
      setup.epochs = 1;
      Loader loader(options_of(setup));
      EXPECT_EQ(rest_of_run(loader), without_fetches(setup));
      std::uint64_t rows = 0;
      for (std::uint64_t p = 0; p < 23; ++p) rows += p % 6 % world == rank ? 1 : 0;
      EXPECT_LE(setup.behaviour->bytes, rows * 5 * 4) << "what no row of this rank needs is not read";
    }
  }
}

TEST(Fetch, NeighboursAreOneRequest) {
  Case setup;
  setup.count = 1000;
  setup.fetch = 256;
  setup.batch = 8;
  setup.epochs = 1;
  setup.max_bytes = 64 << 20;
  setup.behaviour->near_bytes = 64;
  Loader loader(options_of(setup));
  EXPECT_EQ(rest_of_run(loader), without_fetches(setup));
  EXPECT_EQ(setup.behaviour->runs, 4U + 4U)
      << "a run for each fetch, and one for what odd rows read in their second round";
}

TEST(Fetch, RestoreAtEveryStepRepeatsTheRest) {
  for (const std::uint64_t window : {5, 0}) {
    Case setup;
    setup.window = window;
    setup.fetch = 7;
    setup.skip = {{3, 5}};
    expect_restores_at_every_step(options_of(setup));
  }
}

TEST(Fetch, WhatDoesNotFitIsReadInParts) {
  for (const std::uint64_t window : {500, 0}) {
    Case setup;
    setup.count = 64;
    setup.window = window;
    setup.fetch = 64;
    setup.batch = 4;
    setup.max_bytes = 1;  // prefetch + 2 batches, and a batch of rows
    Loader loader(options_of(setup));
    EXPECT_EQ(rest_of_run(loader), without_fetches(setup));
  }
}

TEST(Fetch, SeeksAndBatchSizesInTheMiddleOfAFetch) {
  Case setup;
  setup.fetch = 16;
  setup.behaviour->late = true;
  Case plain = setup;
  plain.fetch = 1;
  Loader fetching(options_of(setup));
  Loader reference(options_of(plain));
  for (const std::uint64_t position : {5, 0, 21, 22, 3}) {
    for (Loader* loader : {&fetching, &reference}) {
      loader->seek(position);
      loader->begin();
    }
    for (int step = 0; step < 3; ++step) {
      const auto a = next(fetching);
      const auto b = next(reference);
      ASSERT_TRUE(a && b);
      EXPECT_EQ(look(*a), look(*b)) << position;
    }
    fetching.set_global_batch_size(position + 1);
    reference.set_global_batch_size(position + 1);
    EXPECT_EQ(look(*next(fetching)), look(*next(reference)));
  }
}

TEST(Fetch, AnErrorIsRaisedAtItsBatchAndIsReadAgain) {
  for (const bool late : {false, true}) {
    for (const std::uint64_t window : {5, 0}) {
      Case setup;
      setup.window = window;
      setup.fetch = 23;
      setup.epochs = 1;
      setup.behaviour->late = late;
      setup.behaviour->fail_offset = window > 0 ? 10 * 5 * 4 : 10 * 4 * 4;
      setup.behaviour->failures = 1;
      SCOPED_TRACE(::testing::Message() << "window " << window << " late " << late);
      const std::vector<Seen> expected = without_fetches(setup);
      Loader loader(options_of(setup));
      for (std::size_t step = 0; step < 2; ++step) EXPECT_EQ(look(*next(loader)), expected[step]);
      EXPECT_THROW(next(loader), Error);
      EXPECT_EQ(loader.position(), 8U);
      EXPECT_EQ(rest(loader), std::vector<Seen>(expected.begin() + 2, expected.end()));
    }
  }
}

TEST(Fetch, ClosingInTheMiddleEndsWhatIsUnderWay) {
  for (int round = 0; round < 300; ++round) {
    Case setup;
    setup.window = round % 2 == 0 ? 5 : 0;
    setup.fetch = 3 + static_cast<std::uint64_t>(round) % 20;
    setup.behaviour->late = round % 3 == 0;
    Loader loader(options_of(setup));
    for (int step = 0; step < round % 4; ++step) next(loader);
    if (round % 5 == 0) loader.seek(7);
    if (round % 7 == 0) next(loader);
    loader.close();
  }
}

// --- how stretches are cut into parts

/// The parts' sizes of a stretch of these observations, each of which has a position of its own.
std::vector<std::size_t> parts_of(const std::vector<Pick>& picks, std::uint64_t window = 5) {
  Case setup;
  setup.count = 1;
  const BatchFormats formats{format_of(setup, window), format_of(setup, window)};
  const auto bound = std::make_shared<MemoryBound>(0, 0, 1);
  Stretch stretch(100, bound, std::make_shared<SpareParts>(bound));
  for (std::size_t i = 0; i < picks.size(); ++i) stretch.add(100 + 3 * i, picks[i], 10);
  EXPECT_EQ(stretch.estimated_bytes(), 10 * picks.size());
  stretch.close(100 + 3 * picks.size(), formats);
  EXPECT_EQ(bound->fetched(), 10 * picks.size());
  for (std::size_t i = 0; i < picks.size(); ++i) EXPECT_EQ(stretch.row(100 + 3 * i).index, picks[i].index);
  std::vector<std::size_t> sizes;
  std::uint64_t estimated = 0;
  for (const auto& part : stretch.parts) {
    sizes.push_back(part->rows.size());
    estimated += part->counted_bytes;
    EXPECT_TRUE(std::is_sorted(part->rows.begin(), part->rows.end(),
                               [](const Row& a, const Row& b) { return a.index < b.index; }));
  }
  EXPECT_EQ(estimated, 10 * picks.size());
  return sizes;
}

/// Observations [first, first + count), the last first.
void add(std::vector<Pick>& picks, std::uint64_t first, std::uint64_t count, std::uint64_t fetch = 0,
         std::uint32_t source = 0) {
  for (std::uint64_t i = count; i-- > 0;) picks.push_back({first + i, fetch, source, 0});
}

TEST(FetchParts, NeighboursStayTogetherUpToAThousandRows) {
  std::vector<Pick> picks;
  add(picks, 0, 1024);
  EXPECT_EQ(parts_of(picks), std::vector<std::size_t>{1024});
  add(picks, 1024, 1500);
  EXPECT_EQ(parts_of(picks), (std::vector<std::size_t>{1024, 1024, 476}));
}

TEST(FetchParts, AreCutAtAGapOnceTheyAreLargeEnough) {
  std::vector<Pick> picks;
  add(picks, 0, 10);
  add(picks, 20, 53);
  add(picks, 100, 200);  // after 63 rows
  add(picks, 500, 30);
  add(picks, 530, 30);
  add(picks, 600, 10);
  EXPECT_EQ(parts_of(picks), (std::vector<std::size_t>{263, 70}));
  picks.push_back({11, 0, 0, 0});
  EXPECT_EQ(parts_of(picks), (std::vector<std::size_t>{64, 200, 70}));
}

TEST(FetchParts, LargeRowsAreCutAtEachGap) {
  std::vector<Pick> picks;
  for (std::uint64_t i = 0; i < 6; ++i) add(picks, i * 10, 2);
  EXPECT_EQ(parts_of(picks), std::vector<std::size_t>{12});
  EXPECT_EQ(parts_of(picks, 1U << 18), (std::vector<std::size_t>(6, 2))) << "rows of 1 MiB";
  EXPECT_EQ(parts_of(picks, 60'000), (std::vector<std::size_t>(3, 4))) << "of 240 kB: two are not enough";
}

TEST(FetchParts, LargeNeighboursAreCutAfterSixtyFour) {
  std::vector<Pick> picks;
  add(picks, 0, 200);
  EXPECT_EQ(parts_of(picks, 1U << 17), (std::vector<std::size_t>{64, 64, 64, 8})) << "rows of 512 KiB";
}

TEST(FetchParts, AnObservationThatIsMetTwiceIsItsOwnNeighbour) {
  std::vector<Pick> picks;
  for (int i = 0; i < 100; ++i) add(picks, 7, 1);
  EXPECT_EQ(parts_of(picks), std::vector<std::size_t>{100});
}

TEST(FetchParts, FetchesAndSourcesAreApart) {
  std::vector<Pick> picks;
  add(picks, 0, 5, 1);
  add(picks, 5, 4, 2);
  add(picks, 9, 3, 2, 1);
  EXPECT_EQ(parts_of(picks), (std::vector<std::size_t>{5, 4, 3}));
}

TEST(FetchParts, MemoryIsCountedAsItIsAndGivenBack) {
  Case setup;
  const BatchFormats formats{format_of(setup, 5)};
  const auto bound = std::make_shared<MemoryBound>(0, 0, 1);
  {
    Stretch stretch(0, bound, std::make_shared<SpareParts>(bound));
    for (std::uint64_t i = 0; i < 3; ++i) stretch.add(i, {i, 0, 0, 0}, 1'000);
    stretch.close(3, formats);
    EXPECT_EQ(bound->fetched(), 3'000U);
    FetchPart& part = *stretch.parts.at(0);
    part.place();
    for (std::size_t i = 1; i < 3; ++i) EXPECT_GE(part.rows[i].records, part.rows[i - 1].records + 20);
    EXPECT_LE(part.rows[2].records + 20, part.slab.data() + part.slab.bytes());
    stretch.account(part);
    EXPECT_EQ(stretch.bytes(), part.held_bytes());
    EXPECT_EQ(bound->fetched(), part.held_bytes());
  }
  EXPECT_EQ(bound->fetched(), 0U);
}

TEST(SpareParts, AreTakenAgainWithTheirMemoryUntilItIsNeeded) {
  Case setup;
  const BatchFormats formats{format_of(setup, 5)};
  const auto bound = std::make_shared<MemoryBound>(10'000, 0, 1);
  const auto spares = std::make_shared<SpareParts>(bound);
  std::unique_ptr<FetchPart> part = spares->take(8);
  part->format = &formats[0];
  for (Row& row : part->rows) row.restart(0, 5);
  part->place();
  const std::byte* const memory = part->slab.data();
  const std::uint64_t bytes = part->held_bytes();
  EXPECT_FALSE(bound->needs_spares(10'000, 1)) << "none are spare";
  spares->give(std::move(part));
  EXPECT_FALSE(bound->needs_spares(0, 10'000 - bytes));
  EXPECT_TRUE(bound->needs_spares(0, 10'001 - bytes));
  EXPECT_EQ(bound->fetched(), 0U) << "fetches may have it";
  part = spares->take(3);
  EXPECT_EQ(part->slab.data(), memory);
  EXPECT_EQ(part->rows.size(), 3U);
  part->format = &formats[0];
  for (Row& row : part->rows) row.restart(0, 5);
  part->place();
  EXPECT_EQ(part->held_bytes() - 3 * sizeof(Row), part->slab.bytes()) << "what is held";
  EXPECT_EQ(part->used_bytes(), 3 * (sizeof(Row) + 64)) << "what these rows need of it";
  EXPECT_FALSE(bound->needs_spares(0, 10'001)) << "it is no longer spare";
  spares->give(std::move(part));
  spares->clear();
  EXPECT_FALSE(bound->needs_spares(0, 10'001));
  EXPECT_EQ(spares->take(1)->slab.bytes(), 0U);
}

// A part of one row may have the memory of many: rows to come are estimated by what rows need.
TEST(SpareParts, DoNotRaiseTheEstimateOfRowsToCome) {
  Case setup;
  const BatchFormats formats{format_of(setup, 5)};
  const auto bound = std::make_shared<MemoryBound>(1 << 20, 0, 1);
  const auto spares = std::make_shared<SpareParts>(bound);
  for (const std::uint64_t rows : {64, 1}) {
    Stretch stretch(0, bound, spares);
    for (std::uint64_t i = 0; i < rows; ++i) stretch.add(i, {i, 0, 0, 0}, 100);
    stretch.close(rows, formats);
    for (const auto& part : stretch.parts) {
      part->place();
      stretch.account(*part);
    }
    EXPECT_EQ(bound->largest_row(), sizeof(Row) + 64) << rows;
  }
}

// --- what is planned, and when

/// Lanes take turns; each reads fetches of its own, one after the other.
class LanedOrder : public IdentityOrder {
 public:
  LanedOrder(std::uint64_t size, std::uint64_t lanes, std::uint64_t fetch)
      : IdentityOrder(size), lanes_(lanes), fetch_(fetch) {}
  void pick(std::uint64_t first, std::uint64_t stride, std::span<Pick> out) const override {
    IdentityOrder::pick(first, stride, out);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::uint64_t position = first + i * stride;
      const std::uint64_t at = position % (lanes_ * fetch_);
      out[i].fetch = position / (lanes_ * fetch_) * lanes_ + at % lanes_;
      out[i].index = (out[i].fetch * fetch_ + at / lanes_) % epoch_size();
    }
  }
  std::uint64_t fetch_end(std::uint64_t position) const override {
    return (position / (lanes_ * fetch_) + 1) * lanes_ * fetch_;
  }

 private:
  std::uint64_t lanes_;
  std::uint64_t fetch_;
};

/// A planner, and batches for it.
struct Planning {
  Case setup;
  std::shared_ptr<const Order> order;
  std::shared_ptr<const BatchFormats> formats;
  std::shared_ptr<const Job> job;
  std::shared_ptr<BatchPool> pool = BatchPool::make(1);
  std::shared_ptr<MemoryBound> bound;
  std::optional<FetchPlanner> planner;

  Planning(const Case& setup_, std::shared_ptr<const Order> order_) : setup(setup_), order(std::move(order_)) {
    formats = std::make_shared<const BatchFormats>(BatchFormats{format_of(setup, setup.window)});
    job = job_of(setup, order, *formats);
    bound = std::make_shared<MemoryBound>(setup.max_bytes, 0, 1);
    planner.emplace(formats, std::make_shared<const RowChoice>(share()), pool, bound);
    planner->restart(job, 0);
  }
  [[nodiscard]] Share share() const { return {setup.rank, setup.world_size}; }
  /// The rank's batch at `position`, or null.
  [[nodiscard]] std::shared_ptr<Batch> batch(std::uint64_t position) const {
    std::optional<BatchPlan> plan = job->plan(position, share());
    if (!plan) return nullptr;
    auto batch = std::make_shared<Batch>();
    batch->plan = std::move(*plan);
    RowChoice(share()).choose(*job, batch->plan, batch->positions, batch->picks, batch->cancelled);
    return batch;
  }
  /// Gives the batch its rows, and checks that they are those that stand at its positions.
  std::vector<std::shared_ptr<Stretch>> give_rows(Batch& batch) {
    std::vector<std::shared_ptr<Stretch>> planned;
    planner->give_rows(batch, planned);
    EXPECT_EQ(batch.fetched.size(), batch.picks.size());
    for (std::size_t i = 0; i < batch.picks.size(); ++i) EXPECT_EQ(batch.fetched[i]->index, batch.picks[i].index);
    return planned;
  }
};

std::vector<std::shared_ptr<const Order>> fetching_orders(std::uint64_t size) {
  return {std::make_shared<IdentityOrder>(size, 8), std::make_shared<IdentityOrder>(size, size),
          std::make_shared<LanedOrder>(size, 3, 8), std::make_shared<LanedOrder>(size, 2, 1)};
}

TEST(FetchPlanner, PlansEveryRowOfThisRankOnceAndNoneOfAnother) {
  for (const auto& order : fetching_orders(96)) {
    for (const std::uint64_t world : {1, 2, 3}) {
      for (const std::uint64_t max_bytes : {1 << 20, 1}) {
        for (const bool ahead : {false, true}) {
          std::multiset<std::uint64_t> delivered;
          for (std::uint64_t rank = 0; rank < world; ++rank) {
            Case setup;
            setup.count = 96;
            setup.batch = 6;  // straddles fetches of 8 and of 24
            setup.rank = rank;
            setup.world_size = world;
            setup.max_bytes = max_bytes;
            setup.skip = {{10, 13}, {50, 70}};
            Planning planning(setup, order);
            std::vector<std::shared_ptr<Stretch>> stretches;
            std::set<const Row*> given;
            std::uint64_t position = 0;
            while (const auto batch = planning.batch(position)) {
              position = batch->plan.end;
              for (auto& stretch : planning.give_rows(*batch)) stretches.push_back(std::move(stretch));
              for (const Row* row : batch->fetched) EXPECT_TRUE(given.insert(row).second) << "given twice";
              for (const Pick& pick : batch->picks) delivered.insert(pick.index);
              if (!ahead) continue;
              while (auto stretch = planning.planner->plan_ahead()) stretches.push_back(std::move(stretch));
            }
            std::size_t rows = 0;
            std::uint64_t end = 0;
            for (const auto& stretch : stretches) {
              EXPECT_GE(stretch->begin(), end) << "one after the other";
              end = stretch->end();
              rows += stretch->row_count();
              std::size_t in_parts = 0;
              for (const auto& part : stretch->parts) in_parts += part->rows.size();
              EXPECT_EQ(in_parts, stretch->row_count());
            }
            EXPECT_EQ(rows, given.size()) << "what is read is delivered";
          }
          EXPECT_EQ(delivered.size(), 2 * 96U - 23U);
        }
      }
    }
  }
}

TEST(FetchPlanner, AFetchIsOneStretchForAllBatchesThatHaveRowsOfIt) {
  Case setup;
  setup.count = 96;
  setup.batch = 4;
  Planning planning(setup, std::make_shared<IdentityOrder>(96, 24));
  for (std::uint64_t position = 0; position < 96; position += 4) {
    const auto planned = planning.give_rows(*planning.batch(position));
    ASSERT_EQ(planned.size(), position % 24 == 0 ? 1U : 0U) << position;
    if (planned.empty()) continue;
    EXPECT_EQ(planned[0]->begin(), position);
    EXPECT_EQ(planned[0]->end(), position + 24);
    EXPECT_EQ(planned[0]->row_count(), 24U);
    ASSERT_EQ(planned[0]->parts.size(), 1U);
  }
}

// Rows of 1 KiB that lie in the order of their positions.
TEST(FetchPlanner, AStretchOfRowsInTheirOrderEndsWhereARequestIsLargeEnough) {
  for (const bool reversed : {false, true}) {
    Case setup;
    setup.count = 8192;
    setup.window = 256;
    setup.batch = 64;
    setup.max_bytes = 64 << 20;
    std::shared_ptr<const Order> order = std::make_shared<IdentityOrder>(8192, 8192);
    if (reversed) order = std::make_shared<LanedOrder>(8192, 2, 4096);  // places jump to and fro
    Planning planning(setup, order);
    const auto planned = planning.give_rows(*planning.batch(0));
    ASSERT_EQ(planned.size(), 1U);
    if (reversed) {
      EXPECT_EQ(planned[0]->row_count(), 8192U);
    } else {
      EXPECT_NEAR(static_cast<double>(planned[0]->row_count()), 960, 64);
    }
  }
}

TEST(FetchPlanner, SmallStretchesArePlannedAheadUntilTheyAreEnough) {
  for (const auto& [fetch, ahead] : {std::pair{8U, 8U}, std::pair{4096U, 1U}}) {
    Case setup;
    setup.count = 1 << 16;
    setup.window = 256;
    setup.batch = 8;
    setup.max_bytes = 64 << 20;
    Planning planning(setup, std::make_shared<LanedOrder>(1 << 16, 2, fetch));
    planning.give_rows(*planning.batch(0));
    unsigned planned = 0;
    while (planning.planner->plan_ahead()) ++planned;
    EXPECT_EQ(planned, ahead) << "fetches of " << fetch;
  }
}

TEST(FetchPlanner, AllLanesThatAreOpenTogetherAreOneStretch) {
  Case setup;
  setup.count = 96;
  setup.batch = 4;
  Planning planning(setup, std::make_shared<LanedOrder>(96, 3, 8));
  const auto planned = planning.give_rows(*planning.batch(0));
  ASSERT_EQ(planned.size(), 1U);
  EXPECT_EQ(planned[0]->end(), 24U);
  ASSERT_EQ(planned[0]->parts.size(), 3U) << "a part for each lane's fetch";
  for (std::size_t lane = 0; lane < 3; ++lane) {
    for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(planned[0]->parts[lane]->rows[i].index, lane * 8 + i);
  }
}

/// Counts how often it is asked where fetches end.
class CountingOrder : public IdentityOrder {
 public:
  using IdentityOrder::IdentityOrder;
  std::uint64_t fetch_end(std::uint64_t position) const override {
    ++asked;
    return IdentityOrder::fetch_end(position);
  }
  mutable std::atomic<std::uint64_t> asked{0};
};

TEST(FetchPlanner, ABatchOfMoreFetchesThanCanBeCountedIsPlannedAtOnce) {
  Case setup;
  setup.count = 96;
  setup.epochs.reset();
  setup.batch = setup.world_size = std::uint64_t{1} << 31;  // a row for each rank
  const auto order = std::make_shared<CountingOrder>(96, 8);
  Planning planning(setup, order);
  const auto batch = planning.batch(0);
  planning.give_rows(*batch);
  EXPECT_LT(order->asked, 100U);
}

TEST(FetchPlanner, BatchesMayAskInAnyOrder) {
  for (const std::uint64_t max_bytes : {1 << 20, 1}) {
    Case setup;
    setup.count = 96;
    setup.batch = 6;
    setup.max_bytes = max_bytes;
    Planning planning(setup, std::make_shared<IdentityOrder>(96, 8));
    for (const std::uint64_t position : {18, 6, 12, 0, 30, 24}) planning.give_rows(*planning.batch(position));
  }
}

TEST(FetchPlanner, ABudgetIsExceededByTheRowsOfOneBatchAtMost) {
  for (const auto& order : fetching_orders(960)) {
    for (const std::uint64_t world : {1, 2}) {
      for (const std::uint64_t batches : {0, 1, 3, 10}) {
        Case setup;
        setup.count = 960;
        setup.batch = 10;
        setup.world_size = world;
        setup.epochs = 1;
        const std::uint64_t batch_bytes = 10 / world * (sizeof(Row) + 64);
        setup.max_bytes = batches * batch_bytes;
        Planning planning(setup, order);
        std::shared_ptr<Batch> held;  // keeps the stretches that it has rows of
        std::uint64_t position = 0;
        while (const auto batch = planning.batch(position)) {
          position = batch->plan.end;
          const std::uint64_t before = planning.bound->fetched();
          const std::uint64_t left = planning.bound->left_for_fetches(0);
          const auto planned = planning.give_rows(*batch);
          const std::uint64_t added = planning.bound->fetched() - before;
          // A batch that straddles the end of a fetch needs two stretches.
          EXPECT_LE(added, left + planned.size() * batch_bytes);
          held = batch;
        }
        held.reset();
        EXPECT_EQ(planning.bound->fetched(), 0U) << "all rows were taken";
      }
    }
  }
}

TEST(FetchPlanner, AheadIsPlannedWhatFitsAsAWhole) {
  const std::uint64_t fetch_bytes = 24 * (sizeof(Row) + 64);
  for (const std::uint64_t fetches : {1, 2, 3}) {
    Case setup;
    setup.count = 96;
    setup.epochs = 1;
    setup.max_bytes = fetches * fetch_bytes;
    Planning planning(setup, std::make_shared<IdentityOrder>(96, 24));
    const auto first = planning.batch(0);
    EXPECT_EQ(planning.give_rows(*first).size(), 1U);
    EXPECT_EQ(planning.bound->fetched(), fetch_bytes);
    const auto ahead = planning.planner->plan_ahead();
    ASSERT_EQ(ahead != nullptr, fetches > 1);
    EXPECT_EQ(planning.bound->fetched(), std::min<std::uint64_t>(fetches, 2) * fetch_bytes);
    if (!ahead) continue;
    EXPECT_EQ(ahead->begin(), 24U);
    EXPECT_EQ(ahead->end(), 48U);
    const auto next = planning.planner->plan_ahead();
    ASSERT_EQ(next != nullptr, fetches > 2);
    EXPECT_EQ(next ? next->begin() : 48U, 48U);
    EXPECT_TRUE(planning.give_rows(*planning.batch(24)).empty()) << "it has its rows already";
    EXPECT_FALSE(planning.planner->plan_ahead()) << "there is no memory";
  }
}

// As a batch begins to take the rows of a stretch, the one after it is planned.
TEST(FetchPlanner, TakingTheFirstRowsOfAStretchPlansTheNext) {
  Case setup;
  setup.count = 96;
  setup.epochs = 1;
  setup.max_bytes = 2 * 24 * (sizeof(Row) + 64);
  Planning planning(setup, std::make_shared<IdentityOrder>(96, 24));
  auto held = planning.give_rows(*planning.batch(0));
  auto ahead = planning.planner->plan_ahead();
  ASSERT_TRUE(ahead);
  for (std::uint64_t position = 4; position < 24; position += 4) planning.give_rows(*planning.batch(position));
  held.clear();
  const auto after = planning.give_rows(*planning.batch(24));
  ASSERT_EQ(after.size(), 1U);
  EXPECT_EQ(after[0]->begin(), 48U);
}

TEST(FetchPlanner, AheadIsPlannedNothingWhereMemoryIsSpent) {
  for (const std::uint64_t fetch : {4, 8}) {  // of a batch, and of two
    Case setup;
    setup.count = 96;
    setup.batch = 4;
    setup.max_bytes = 1;
    Planning planning(setup, std::make_shared<IdentityOrder>(96, fetch));
    const auto first = planning.batch(0);
    planning.give_rows(*first);
    const std::uint64_t before = planning.bound->fetched();
    EXPECT_FALSE(planning.planner->plan_ahead()) << fetch;
    EXPECT_EQ(planning.bound->fetched(), before);
    EXPECT_EQ(planning.give_rows(*planning.batch(4)).size(), 1U) << "a batch that needs it gets it";
  }
}

TEST(FetchPlanner, NothingIsPlannedBeyondTheRun) {
  Case setup;
  setup.count = 10;
  setup.epochs = 1;
  Planning planning(setup, std::make_shared<IdentityOrder>(10, 10));
  const auto first = planning.batch(0);
  EXPECT_EQ(planning.give_rows(*first).at(0)->row_count(), 10U);
  EXPECT_FALSE(planning.planner->plan_ahead());
}

TEST(FetchPlanner, StoppedItPlansNothingAndWhatItPlannedIsCancelled) {
  Case setup;
  setup.count = 96;
  setup.batch = 4;
  Planning planning(setup, std::make_shared<IdentityOrder>(96, 24));
  auto first = planning.batch(0);
  const auto planned = planning.give_rows(*first);
  EXPECT_FALSE(planned[0]->cancelled);
  planning.planner->stop();
  EXPECT_TRUE(planned[0]->cancelled);
  EXPECT_FALSE(planning.planner->plan_ahead());
  planning.planner->restart(planning.job, 8);
  const auto again = planning.batch(8);
  const auto anew = planning.give_rows(*again);
  ASSERT_EQ(anew.size(), 1U);
  EXPECT_EQ(anew[0]->begin(), 8U);
  EXPECT_EQ(anew[0]->row_count(), 16U) << "what is left of the fetch";
}

}  // namespace
}  // namespace penstock::testing
