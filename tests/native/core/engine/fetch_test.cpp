// Rows that share fetches: the same batches as without, in fewer reads, within the memory that is allowed.
#include "core/engine/fetch.h"

#include "tests/native/core/engine/loader_fixture.h"

#include <algorithm>
#include <atomic>

namespace penstock::testing {
namespace {

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

std::vector<std::shared_ptr<const Order>> fetching_orders(std::uint64_t size) {
  return {std::make_shared<IdentityOrder>(size, 8), std::make_shared<IdentityOrder>(size, size),
          std::make_shared<LanedOrder>(size, 3, 8), std::make_shared<LanedOrder>(size, 2, 1)};
}

TEST(Fetch, GivesTheBatchesThatSingleRowsGive) {
  for (const Case& setup :
       cases(each(&Case::window, {5, 0}), each(&Case::batch, {1, 4, 6, 30}), each(&Case::per_epoch, {false, true}),
             each(&Case::skip, {Ranges{{5, 9}, {30, 31}}}), each(&Case::fetch, {2, 3, 8, 23, 100}),
             each(&Case::lends, {false, true}), each(&Case::late, {false, true}))) {
    Loader loader(options_of(setup));
    ASSERT_EQ(rest_of_run(loader), plain_run(setup)) << describe(setup);
  }
}

TEST(Fetch, RanksReadTheirOwnRowsAloneWhateverTheOrderAndTheMemory) {
  for (const auto& order : fetching_orders(96)) {
    for (const Case& setup : cases(each(&Case::count, {96}), each(&Case::window, {5, 0}), each(&Case::batch, {6}),
                                   each(&Case::rank, {0, 1, 2}), each(&Case::world_size, {1, 2, 3}),
                                   each(&Case::skip, {Ranges{{10, 13}, {50, 70}}}), each(&Case::prefetch, {1, 5}),
                                   each(&Case::max_bytes, {1 << 20, 1}), each(&Case::lends, {false, true}))) {
      if (setup.rank >= setup.world_size) continue;
      SCOPED_TRACE(describe(setup));
      Loader loader(options_of(setup, order, {format_of(setup, setup.window)}));
      std::uint64_t rows = 0;
      while (const auto batch = next(loader)) {
        std::vector<Pick> picks(batch->plan.valid);
        order->pick_at(batch->positions, picks);
        EXPECT_EQ(batch->picks, picks);
        expect_whole(*batch);
        rows += picks.size();
      }
      EXPECT_NEAR(static_cast<double>(rows), (2 * 96.0 - 23) / static_cast<double>(setup.world_size), 4);
      // A document: a record for its length and at most three of its own.
      const std::uint64_t row_bytes = setup.window > 0 ? 5 * 4 : (1 + 3) * 4;
      EXPECT_LE(setup.behaviour->bytes, rows * row_bytes) << "what no row of this rank needs is not read";
    }
  }
}

TEST(Fetch, NeighboursAreOneRequest) {
  const Case setup{.count = 1000, .batch = 8, .epochs = 1, .fetch = 256, .max_bytes = 64 << 20};
  setup.behaviour->near_bytes = 64;
  Loader loader(options_of(setup));
  EXPECT_EQ(rest_of_run(loader), plain_run(setup));
  EXPECT_EQ(setup.behaviour->runs, 4U + 4U)
      << "a run for each fetch, and one for what odd rows read in their second round";
}

// --- how stretches are cut into parts

/// The parts' sizes of a stretch of these observations, each of which has a position of its own.
std::vector<std::size_t> parts_of(const std::vector<Pick>& picks, std::uint64_t window = 5) {
  const BatchFormats formats{format_of({.count = 1}, window), format_of({.count = 1}, window)};
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

/// Observations that follow one another. The last is picked first.
struct Neighbours {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  std::uint64_t fetch = 0;
  std::uint32_t source = 0;
};

std::vector<Pick> picks_of(const std::vector<Neighbours>& runs) {
  std::vector<Pick> picks;
  for (const Neighbours& run : runs) {
    for (std::uint64_t i = run.count; i-- > 0;) picks.push_back({run.first + i, run.fetch, run.source, 0});
  }
  return picks;
}

TEST(FetchParts, AreCutAtGapsOnceTheyAreLargeEnoughAndAmongNeighboursOnceTheyAreTooLarge) {
  using Sizes = std::vector<std::size_t>;
  EXPECT_EQ(parts_of(picks_of({{0, 1024}})), Sizes{1024});
  EXPECT_EQ(parts_of(picks_of({{0, 1024}, {1024, 1500}})), (Sizes{1024, 1024, 476}));
  EXPECT_EQ(parts_of(picks_of({{0, 200}}), 1U << 17), (Sizes{64, 64, 64, 8})) << "rows of 512 KiB";
  std::vector<Pick> picks = picks_of({{0, 10}, {20, 53}, {100, 200}, {500, 30}, {530, 30}, {600, 10}});
  EXPECT_EQ(parts_of(picks), (Sizes{263, 70})) << "at 100 there are 63 rows";
  picks.push_back({11, 0, 0, 0});
  EXPECT_EQ(parts_of(picks), (Sizes{64, 200, 70}));
  const std::vector<Pick> twos = picks_of({{0, 2}, {10, 2}, {20, 2}, {30, 2}, {40, 2}, {50, 2}});
  EXPECT_EQ(parts_of(twos), Sizes{12});
  EXPECT_EQ(parts_of(twos, 1U << 18), Sizes(6, 2)) << "rows of 1 MiB";
  EXPECT_EQ(parts_of(twos, 60'000), Sizes(3, 4)) << "of 240 kB: two are not enough";
  EXPECT_EQ(parts_of(picks_of(std::vector<Neighbours>(100, {7, 1}))), Sizes{100})
      << "an observation is its own neighbour";
  EXPECT_EQ(parts_of(picks_of({{0, 5, 1}, {5, 4, 2}, {9, 3, 2, 1}})), (Sizes{5, 4, 3})) << "other fetches and sources";
}

/// Parts of fetches, and what they may take.
struct Memory {
  const BatchFormats formats{format_of({}, 5)};
  const std::shared_ptr<MemoryBound> bound;
  const std::shared_ptr<SpareParts> spares = std::make_shared<SpareParts>(bound);

  explicit Memory(std::uint64_t max_bytes) : bound(std::make_shared<MemoryBound>(max_bytes, 0, 1)) {}
  std::unique_ptr<Stretch> stretch(std::uint64_t rows, std::uint64_t bytes_each) {
    auto made = std::make_unique<Stretch>(0, bound, spares);
    for (std::uint64_t i = 0; i < rows; ++i) made->add(i, {i, 0, 0, 0}, bytes_each);
    made->close(rows, formats);
    EXPECT_EQ(bound->fetched(), rows * bytes_each);
    return made;
  }
  std::unique_ptr<FetchPart> part(std::size_t rows) {
    std::unique_ptr<FetchPart> made = spares->take(rows);
    EXPECT_EQ(made->rows.size(), rows);
    made->format = &formats[0];
    for (Row& row : made->rows) row.restart(0, 5);
    made->place();
    return made;
  }
};

TEST(FetchParts, MemoryIsCountedAsItIsAndGivenBack) {
  Memory memory(0);
  auto stretch = memory.stretch(3, 1'000);
  FetchPart& part = *stretch->parts.at(0);
  part.place();
  for (std::size_t i = 1; i < 3; ++i) EXPECT_GE(part.rows[i].records, part.rows[i - 1].records + 20);
  EXPECT_LE(part.rows[2].records + 20, part.slab.data() + part.slab.bytes());
  stretch->account(part);
  EXPECT_EQ(stretch->bytes(), part.held_bytes());
  EXPECT_EQ(memory.bound->fetched(), part.held_bytes());
  stretch.reset();
  EXPECT_EQ(memory.bound->fetched(), 0U);
}

TEST(SpareParts, AreTakenAgainWithTheirMemoryUntilItIsNeeded) {
  Memory memory(10'000);
  std::unique_ptr<FetchPart> part = memory.part(8);
  const std::byte* const address = part->slab.data();
  const std::uint64_t bytes = part->held_bytes();
  EXPECT_FALSE(memory.bound->needs_spares(10'000, 1)) << "none are spare";
  memory.spares->give(std::move(part));
  EXPECT_FALSE(memory.bound->needs_spares(0, 10'000 - bytes));
  EXPECT_TRUE(memory.bound->needs_spares(0, 10'001 - bytes));
  EXPECT_EQ(memory.bound->fetched(), 0U) << "fetches may have it";
  part = memory.part(3);
  EXPECT_EQ(part->slab.data(), address);
  EXPECT_EQ(part->held_bytes() - 3 * sizeof(Row), part->slab.bytes()) << "what is held";
  EXPECT_EQ(part->used_bytes(), 3 * (sizeof(Row) + 64)) << "what these rows need of it";
  EXPECT_FALSE(memory.bound->needs_spares(0, 10'001)) << "it is no longer spare";
  memory.spares->give(std::move(part));
  memory.spares->clear();
  EXPECT_FALSE(memory.bound->needs_spares(0, 10'001));
  EXPECT_EQ(memory.spares->take(1)->slab.bytes(), 0U);
}

// A part of one row may have the memory of many: rows to come are estimated by what rows need.
TEST(SpareParts, DoNotRaiseTheEstimateOfRowsToCome) {
  Memory memory(1 << 20);
  for (const std::uint64_t rows : {64, 1}) {
    const auto stretch = memory.stretch(rows, 100);
    for (const auto& part : stretch->parts) {
      part->place();
      stretch->account(*part);
    }
    EXPECT_EQ(memory.bound->largest_row(), sizeof(Row) + 64) << rows;
  }
}

// --- what is planned, and when

/// A planner, and batches for it.
struct Planning {
  Case setup;
  std::shared_ptr<const Order> order;
  std::shared_ptr<const BatchFormats> formats;
  std::shared_ptr<const Job> job;
  std::shared_ptr<BatchPool> pool = BatchPool::make(1);
  std::shared_ptr<MemoryBound> bound;
  std::optional<FetchPlanner> planner;

  /// Without an order, a fetch is `fetch` observations that follow one another.
  explicit Planning(const Case& setup_, std::shared_ptr<const Order> order_ = nullptr)
      : setup(setup_), order(std::move(order_)) {
    if (!order) order = std::make_shared<IdentityOrder>(setup.count, setup.fetch);
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
  std::vector<std::shared_ptr<Stretch>> give_rows(std::uint64_t position) { return give_rows(*batch(position)); }
};

TEST(FetchPlanner, ABudgetIsExceededByTheRowsOfOneBatchAtMost) {
  for (const auto& order : fetching_orders(960)) {
    for (const std::uint64_t world : {1, 2}) {
      for (const std::uint64_t batches : {0, 1, 3, 10}) {
        const std::uint64_t batch_bytes = 10 / world * (sizeof(Row) + 64);
        Planning planning(
            {.count = 960, .batch = 10, .world_size = world, .epochs = 1, .max_bytes = batches * batch_bytes}, order);
        std::shared_ptr<Batch> held;  // keeps the stretches that it has rows of
        std::uint64_t position = 0;
        while (const auto batch = planning.batch(position)) {
          position = batch->plan.end;
          const std::uint64_t before = planning.bound->fetched();
          const std::uint64_t left = planning.bound->left_for_fetches(0);
          const auto planned = planning.give_rows(*batch);
          // A batch that straddles the end of a fetch needs two stretches.
          EXPECT_LE(planning.bound->fetched() - before, left + planned.size() * batch_bytes);
          held = batch;
        }
        held.reset();
        EXPECT_EQ(planning.bound->fetched(), 0U) << "all rows were taken";
      }
    }
  }
}

TEST(FetchPlanner, AFetchIsOneStretchForAllBatchesThatHaveRowsOfIt) {
  Planning planning({.count = 96, .fetch = 24});
  for (std::uint64_t position = 0; position < 96; position += 4) {
    const auto planned = planning.give_rows(position);
    ASSERT_EQ(planned.size(), position % 24 == 0 ? 1U : 0U) << position;
    if (planned.empty()) continue;
    EXPECT_EQ(planned[0]->begin(), position);
    EXPECT_EQ(planned[0]->end(), position + 24);
    EXPECT_EQ(planned[0]->row_count(), 24U);
    ASSERT_EQ(planned[0]->parts.size(), 1U);
  }
}

// Rows of 1 KiB.
TEST(FetchPlanner, AStretchOfRowsInTheirOrderEndsWhereARequestIsLargeEnough) {
  const Case setup{.count = 8192, .window = 256, .batch = 64, .fetch = 8192, .max_bytes = 64 << 20};
  const auto planned = Planning(setup).give_rows(0);
  ASSERT_EQ(planned.size(), 1U);
  EXPECT_NEAR(static_cast<double>(planned[0]->row_count()), 960, 64);
  const auto to_and_fro = Planning(setup, std::make_shared<LanedOrder>(8192, 2, 4096)).give_rows(0);
  ASSERT_EQ(to_and_fro.size(), 1U);
  EXPECT_EQ(to_and_fro[0]->row_count(), 8192U);
}

TEST(FetchPlanner, SmallStretchesArePlannedAheadUntilTheyAreEnough) {
  for (const auto& [fetch, ahead] : {std::pair{8U, 8U}, std::pair{4096U, 1U}}) {
    Planning planning({.count = 1 << 14, .window = 256, .batch = 8, .max_bytes = 64 << 20},
                      std::make_shared<LanedOrder>(1 << 14, 2, fetch));
    planning.give_rows(0);
    unsigned planned = 0;
    while (planning.planner->plan_ahead()) ++planned;
    EXPECT_EQ(planned, ahead) << "fetches of " << fetch;
  }
}

TEST(FetchPlanner, AllLanesThatAreOpenTogetherAreOneStretch) {
  Planning planning({.count = 96}, std::make_shared<LanedOrder>(96, 3, 8));
  const auto planned = planning.give_rows(0);
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
  const std::uint64_t ranks = std::uint64_t{1} << 31;  // with a row each
  const auto order = std::make_shared<CountingOrder>(96, 8);
  Planning planning({.count = 96, .batch = ranks, .world_size = ranks, .epochs = {}}, order);
  planning.give_rows(0);
  EXPECT_LT(order->asked, 100U);
}

TEST(FetchPlanner, BatchesMayAskInAnyOrder) {
  for (const std::uint64_t max_bytes : {1 << 20, 1}) {
    Planning planning({.count = 96, .batch = 6, .fetch = 8, .max_bytes = max_bytes});
    for (const std::uint64_t position : {18, 6, 12, 0, 30, 24}) planning.give_rows(position);
  }
}

constexpr std::uint64_t kFetchBytes = 24 * (sizeof(Row) + 64);

// Rank 7 of 8 has no row of batches of 5: nothing is looked for to the end of its fetch, which is far away.
TEST(FetchPlanner, BatchesWithoutARowOfTheRankArePassedOver) {
  const std::uint64_t count = 100'000;
  Planning planning({.count = count, .batch = 16, .rank = 7, .world_size = 8, .fetch = count});
  const auto job = [&](std::uint64_t position, std::uint64_t size) {
    planning.job = std::make_shared<const Job>(planning.job->with_batch_size(position, size));
  };
  job(160, 5);
  job(160 + 5'000 * 5, 16);
  planning.planner->restart(planning.job, 0);
  auto planned = planning.give_rows(0);
  ASSERT_EQ(planned.size(), 1U);
  EXPECT_EQ(planned[0]->end(), 160U) << "where its rows end";
  for (std::uint64_t position = 16; position < 160; position += 16) EXPECT_TRUE(planning.give_rows(position).empty());
  EXPECT_FALSE(planning.planner->plan_ahead());
  for (std::uint64_t step = 0; step < 4'900; ++step) EXPECT_TRUE(planning.give_rows(160 + step * 5).empty());
  planned = planning.give_rows(160 + 5'000 * 5);  // as if it came before those that are left
  ASSERT_EQ(planned.size(), 1U);
  EXPECT_EQ(planned[0]->begin(), 160U + 5'000 * 5);
  EXPECT_TRUE(planning.give_rows(160 + 4'999 * 5).empty());
  EXPECT_TRUE(planning.give_rows(160 + 5'000 * 5 + 16).empty()) << "rows of the same fetch";
}

TEST(FetchPlanner, AheadIsPlannedWhatFitsAsAWhole) {
  for (const std::uint64_t fetches : {1, 2, 3}) {
    Planning planning({.count = 96, .epochs = 1, .fetch = 24, .max_bytes = fetches * kFetchBytes});
    const auto first = planning.batch(0);
    EXPECT_EQ(planning.give_rows(*first).size(), 1U);
    EXPECT_EQ(planning.bound->fetched(), kFetchBytes);
    const auto ahead = planning.planner->plan_ahead();
    ASSERT_EQ(ahead != nullptr, fetches > 1);
    EXPECT_EQ(planning.bound->fetched(), std::min<std::uint64_t>(fetches, 2) * kFetchBytes);
    if (!ahead) continue;
    EXPECT_EQ(ahead->begin(), 24U);
    EXPECT_EQ(ahead->end(), 48U);
    const auto next = planning.planner->plan_ahead();
    ASSERT_EQ(next != nullptr, fetches > 2);
    EXPECT_EQ(next ? next->begin() : 48U, 48U);
    EXPECT_TRUE(planning.give_rows(24).empty()) << "it has its rows already";
    EXPECT_FALSE(planning.planner->plan_ahead()) << "there is no memory";
  }
}

// As a batch begins to take the rows of a stretch, the one after it is planned.
TEST(FetchPlanner, TakingTheFirstRowsOfAStretchPlansTheNext) {
  Planning planning({.count = 96, .epochs = 1, .fetch = 24, .max_bytes = 2 * kFetchBytes});
  auto held = planning.give_rows(0);
  auto ahead = planning.planner->plan_ahead();
  ASSERT_TRUE(ahead);
  for (std::uint64_t position = 4; position < 24; position += 4) planning.give_rows(position);
  held.clear();
  const auto after = planning.give_rows(24);
  ASSERT_EQ(after.size(), 1U);
  EXPECT_EQ(after[0]->begin(), 48U);
}

TEST(FetchPlanner, AheadIsPlannedNothingWhereMemoryIsSpentOrTheRunEnds) {
  for (const std::uint64_t fetch : {4, 8}) {  // of a batch, and of two
    Planning planning({.count = 96, .fetch = fetch, .max_bytes = 1});
    const auto first = planning.batch(0);
    planning.give_rows(*first);
    const std::uint64_t before = planning.bound->fetched();
    EXPECT_FALSE(planning.planner->plan_ahead()) << fetch;
    EXPECT_EQ(planning.bound->fetched(), before);
    EXPECT_EQ(planning.give_rows(4).size(), 1U) << "a batch that needs it gets it";
  }
  Planning whole({.count = 10, .epochs = 1, .fetch = 10});
  EXPECT_EQ(whole.give_rows(0).at(0)->row_count(), 10U);
  EXPECT_FALSE(whole.planner->plan_ahead());
}

TEST(FetchPlanner, StoppedItPlansNothingAndWhatItPlannedIsCancelled) {
  Planning planning({.count = 96, .fetch = 24});
  const auto planned = planning.give_rows(0);
  EXPECT_FALSE(planned[0]->cancelled);
  planning.planner->stop();
  EXPECT_TRUE(planned[0]->cancelled);
  EXPECT_FALSE(planning.planner->plan_ahead());
  planning.planner->restart(planning.job, 8);
  const auto anew = planning.give_rows(8);
  ASSERT_EQ(anew.size(), 1U);
  EXPECT_EQ(anew[0]->begin(), 8U);
  EXPECT_EQ(anew[0]->row_count(), 16U) << "what is left of the fetch";
}

}  // namespace
}  // namespace penstock::testing
