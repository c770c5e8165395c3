#include "core/job/cursor.h"

#include "core/base/error.h"
#include "core/job/order.h"
#include "core/job/steps.h"
#include "tests/native/message_of.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace penstock {
namespace {

using Pairs = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

/// One global batch as the words of the contract give it, by plain loops over positions.
struct NaiveBatch {
  std::uint64_t position = 0;
  std::uint64_t end = 0;
  std::uint64_t size = 0;
  std::vector<std::uint64_t> taken = {};
};

struct Naive {
  const CursorOptions& options;
  std::uint64_t horizon;

  [[nodiscard]] bool is_skipped(std::uint64_t position) const {
    return std::any_of(options.skip.begin(), options.skip.end(),
                       [&](const auto& range) { return range.first <= position && position < range.second; });
  }
  [[nodiscard]] std::uint64_t limit(std::uint64_t position) const {
    std::uint64_t end = horizon;
    if (options.per_epoch) end = std::min(end, (position / options.epoch_size + 1) * options.epoch_size);
    if (options.stage_end) end = std::min(end, options.stage_end(position));
    return end;
  }
  /// The batch that begins at `position`; it takes nothing if the tail rule makes none.
  [[nodiscard]] NaiveBatch take(std::uint64_t position) const {
    NaiveBatch batch{.position = position, .end = position};
    for (const auto& [from, size] : options.schedule) {
      if (from <= position) batch.size = size;
    }
    for (std::uint64_t p = position; p < limit(position) && batch.taken.size() < batch.size; ++p) {
      if (!is_skipped(p)) batch.taken.push_back(p);
    }
    if (options.tail == Tail::Drop && batch.taken.size() < batch.size) batch.taken.clear();
    if (!batch.taken.empty()) batch.end = batch.taken.back() + 1;
    return batch;
  }
  [[nodiscard]] std::optional<NaiveBatch> plan(std::uint64_t position) const {
    for (; position < horizon; position = limit(position)) {
      NaiveBatch batch = take(position);
      if (batch.taken.empty()) continue;
      const std::uint64_t end = limit(position);
      if (batch.end < end && take(batch.end).taken.empty()) batch.end = end;
      return batch;
    }
    return std::nullopt;
  }
};

std::vector<std::uint64_t> positions(const BatchPlan& plan) {
  std::vector<std::uint64_t> out;
  for (const PositionRun& run : plan.runs) {
    EXPECT_GT(run.count, 0U);
    for (std::uint64_t i = 0; i < run.count; ++i) out.push_back(run.first + i * run.stride);
  }
  EXPECT_EQ(out.size(), plan.valid);
  return out;
}

/// Compares every answer about one job, on all ranks, with the naive model.
void compare(const CursorOptions& options, std::uint64_t world_size, std::uint64_t horizon) {
  const Naive naive{options, horizon};
  const Cursor cursor(options);
  std::vector<NaiveBatch> run;
  for (auto batch = naive.plan(0); batch; batch = naive.plan(batch->end)) run.push_back(*batch);
  for (std::size_t step = 0; step < run.size(); ++step) {
    const std::uint64_t begin = begin_of_step(cursor, step);
    ASSERT_EQ(cursor.plan(begin, {})->position, run[step].position);
    ASSERT_EQ(cursor.steps_before(begin), step);
  }
  testing::expect_error([&] { static_cast<void>(begin_of_step(cursor, run.size())); }, ErrorKind::InvalidArgument,
                        "numbered from 0");
  for (std::uint64_t p = 0; p <= horizon; ++p) {
    SCOPED_TRACE(p);
    const auto expected = naive.plan(p);
    for (std::uint64_t r = 0; r < world_size; ++r) {
      const auto plan = cursor.plan(p, {r, world_size});
      ASSERT_EQ(plan.has_value(), expected.has_value());
      if (!plan) continue;
      std::vector<std::uint64_t> mine;
      for (std::size_t i = r; i < expected->taken.size(); i += world_size) mine.push_back(expected->taken[i]);
      ASSERT_EQ(plan->position, expected->position);
      ASSERT_EQ(plan->end, expected->end);
      const std::uint64_t shared = options.tail == Tail::Short ? expected->taken.size() : expected->size;
      ASSERT_EQ(plan->rows, (shared + world_size - 1) / world_size);
      ASSERT_EQ(plan->of_all, expected->taken.size());
      ASSERT_EQ(positions(*plan), mine) << "rank " << r;
    }
    const auto before = std::count_if(run.begin(), run.end(), [&](const auto& batch) { return batch.position < p; });
    ASSERT_EQ(cursor.steps_before(p), static_cast<std::uint64_t>(before));
    std::vector<NaiveBatch> counted = run;  // of the run, or of the epoch that contains the position
    const auto epoch = [&](std::uint64_t at) { return std::min(at, horizon - 1) / options.epoch_size; };
    if (options.per_epoch) std::erase_if(counted, [&](const auto& batch) { return epoch(batch.position) != epoch(p); });
    ASSERT_EQ(cursor.length(p), counted.size());
    const auto last = cursor.last(p, {});
    ASSERT_EQ(last.has_value(), !counted.empty());
    if (!last) continue;
    ASSERT_EQ(positions(*last), counted.back().taken);
    ASSERT_EQ(last->rows, options.tail == Tail::Short ? counted.back().taken.size() : counted.back().size);
  }
}

TEST(Cursor, EveryAnswerIsThatOfPlainLoopsOverPositions) {
  std::mt19937 random(7);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  for (int trial = 0; trial < 4'000; ++trial) {
    CursorOptions options;
    options.epoch_size = 1 + below(17);
    options.epochs = 1 + below(5);
    options.per_epoch = below(2) == 0;
    options.tail = std::vector{Tail::Pad, Tail::Drop, Tail::Short}.at(below(3));
    const std::uint64_t world_size = 1 + below(8);
    const std::uint64_t horizon = options.epoch_size * *options.epochs;
    for (std::uint64_t i = below(5); i > 0; --i) {
      const std::uint64_t begin = below(horizon + 5);
      options.skip.emplace_back(begin, begin + below(below(2) == 0 ? 4 : horizon + 1));
    }
    for (std::uint64_t at = 0; at < horizon + 3; at += 1 + below(horizon)) {
      options.schedule.emplace_back(at, below(2) == 0 ? world_size * (1 + below(4)) : 1 + below(4 * world_size));
      if (trial % 2 == 0) break;
    }
    if (below(2) == 0) {
      std::set<std::uint64_t> ends;
      for (std::uint64_t i = below(4); i > 0; --i) ends.insert(1 + below(horizon));
      options.stage_end = [ends](std::uint64_t position) {
        const auto at = ends.upper_bound(position);
        return at == ends.end() ? Order::kNever : *at;
      };
    }
    SCOPED_TRACE(trial);
    ASSERT_NO_FATAL_FAILURE(compare(options, world_size, horizon));
  }
}

CursorOptions options_of(std::uint64_t epoch_size, std::optional<std::uint64_t> epochs, Pairs schedule) {
  CursorOptions options;
  options.epoch_size = epoch_size;
  options.epochs = epochs;
  options.schedule = std::move(schedule);
  return options;
}

TEST(Cursor, AnEndlessRunCrossesEpochsAndHasNoLength) {
  const Cursor cursor(options_of(10, {}, {{0, 4}}));
  EXPECT_EQ(positions(*cursor.plan(8, {})), (std::vector<std::uint64_t>{8, 9, 10, 11}));
  EXPECT_EQ(cursor.run_end(), Order::kNever);
  EXPECT_THROW((void)cursor.length(0), Error);
  EXPECT_EQ(cursor.steps_before(41), 11U);
}

TEST(Cursor, AnEndlessRunGivesNoBatchThatNeedsPositionsBeyondTheirEndAndSaysSo) {
  const std::uint64_t end = std::uint64_t{1} << 63;
  for (const bool per_epoch : {false, true}) {
    for (const Tail tail : {Tail::Pad, Tail::Drop, Tail::Short}) {
      CursorOptions options = options_of(10, {}, {{0, 4}});
      options.per_epoch = per_epoch;
      options.tail = tail;
      const Cursor cursor(options);
      ASSERT_TRUE(cursor.plan(end - 9, {}));
      EXPECT_EQ(cursor.plan(end - 4, {})->valid, 4U);
      for (const std::uint64_t position : {end - 3, end - 1, end}) {
        EXPECT_FALSE(cursor.plan(position, {})) << position;
        EXPECT_THROW(cursor.check_over(position), Error) << position;
      }
      options.epochs = 2;  // a run that ends is over
      EXPECT_NO_THROW(Cursor(options).check_over(20));
    }
  }
  CursorOptions options = options_of(8, {}, {{0, 3}});  // 2^63 is a multiple of these epochs: the last one is whole
  options.per_epoch = true;
  const Cursor whole(options);
  EXPECT_EQ(whole.plan(end - 2, {})->valid, 2U);
  EXPECT_NO_THROW(whole.check_over(end - 1));
  EXPECT_THROW(whole.check_over(end), Error);
}

TEST(Cursor, AShortTailHasRowsForWhatIsLeftOnEachRank) {
  CursorOptions options = options_of(100, 1, {{0, 64}});
  options.tail = Tail::Short;
  const Cursor cursor(options);
  EXPECT_EQ(cursor.length(0), 2U);
  for (std::uint64_t rank = 0; rank < 8; ++rank) {
    EXPECT_EQ(cursor.plan(0, {rank, 8})->rows, 8U);
    const auto last = cursor.plan(64, {rank, 8});
    EXPECT_EQ(last->rows, 5U);
    EXPECT_EQ(last->valid, rank < 4 ? 5U : 4U);
    EXPECT_EQ(last->of_all, 36U);
    EXPECT_EQ(last->end, 100U);
  }
  EXPECT_EQ(cursor.plan(64, {0, 8, 2})->rows, 6U) << "micro-batches are equal";
  EXPECT_EQ(cursor.plan(64, {40, 50})->rows, 1U);
  EXPECT_EQ(cursor.plan(64, {40, 50})->valid, 0U);
}

TEST(Cursor, ABatchSizeSetInTheMiddleHoldsUntilALaterEntryOfTheSchedule) {
  Cursor cursor(options_of(100, 1, {{0, 10}, {50, 20}}));
  cursor.set_batch_size(20, 5);
  EXPECT_EQ(cursor.plan(10, {})->end, 20U);
  EXPECT_EQ(cursor.plan(20, {})->end, 25U);
  EXPECT_EQ(cursor.plan(50, {})->end, 70U);
  EXPECT_EQ(cursor.length(0), 2U + 6U + 3U);
  cursor.set_batch_size(50, 25);
  EXPECT_EQ(cursor.plan(50, {})->end, 75U);
  EXPECT_THROW(cursor.set_batch_size(60, 0), Error);
}

TEST(Cursor, HugeRunsCostWhatSmallOnesDo) {
  const std::uint64_t n = std::uint64_t{1} << 52;
  const std::uint64_t far = (std::uint64_t{1} << 60) + 12'345;
  for (const bool per_epoch : {false, true}) {
    for (const Tail tail : {Tail::Pad, Tail::Drop, Tail::Short}) {
      CursorOptions options = options_of(n, 2'000, {{0, 3 * 960}});
      options.per_epoch = per_epoch;
      options.tail = tail;
      options.skip = {{100, 1'000}, {far + 10, far + 20}};
      const Cursor cursor(options);
      const auto plan = cursor.plan(far, {7, 960});
      ASSERT_TRUE(plan);
      EXPECT_EQ(plan->end, far + 3 * 960 + 10);
      EXPECT_EQ(positions(*plan), (std::vector<std::uint64_t>{far + 7, far + 977, far + 1'937}));
      const std::uint64_t epoch_steps = (n + (tail == Tail::Drop ? 0 : 2'879)) / 2'880;
      if (per_epoch) {
        EXPECT_EQ(cursor.length(far + n), epoch_steps);
      } else {
        EXPECT_EQ(cursor.steps_before(far), (far - 900 + 2'879) / 2'880);
      }
      EXPECT_GT(cursor.steps_before(far), far / 2'881);
    }
  }
  // Tiny epochs, none of which holds a batch, for ever or until the schedule changes far away.
  CursorOptions tiny = options_of(3, {}, {{0, 4}});
  tiny.per_epoch = true;
  tiny.tail = Tail::Drop;
  tiny.skip = {{4, far}};
  EXPECT_FALSE(Cursor(tiny).plan(0, {}));
  EXPECT_EQ(Cursor(tiny).steps_before(far), 0U);
  tiny.schedule.emplace_back(far, 2);
  EXPECT_EQ(Cursor(tiny).plan(1, {})->position, (far + 2) / 3 * 3);
}

void expect_refused(const CursorOptions& options, const std::string& words, const Share& share = {0, 8}) {
  testing::expect_error([&] { Cursor(options).check(share); }, ErrorKind::InvalidArgument, words);
}

TEST(Cursor, WrongOptionsAreRefusedInWords) {
  EXPECT_NO_THROW(Cursor(options_of(100, 1, {{0, 96}})).check({0, 8}));
  for (const std::uint64_t size : {100, 3, 103}) {
    expect_refused(options_of(100, 1, {{0, size}}),
                   "global batch size " + std::to_string(size) + " is not a multiple of world size 8: give uneven");
    CursorOptions padded = options_of(100, 1, {{0, size}});
    padded.uneven = Uneven::Pad;
    EXPECT_NO_THROW(Cursor(padded).check({7, 8}));
    expect_refused(padded, "rank 8 of world size 8", {8, 8});
    expect_refused(padded, "micro_batches=0", {0, 8, 0});
  }
  for (const Pairs& schedule : {Pairs{}, Pairs{{1, 8}}, Pairs{{0, 0}}, Pairs{{0, 8}, {5, 16}, {5, 8}}}) {
    expect_refused(options_of(100, 1, schedule), "batch size");
  }
  expect_refused(options_of(100, 1, {{0, 96}}), "rank 8 of world size 8, it must be below", {8, 8});
  expect_refused(options_of(0, 1, {{0, 96}}), "an epoch of 0");
  expect_refused(options_of(std::uint64_t{1} << 40, std::uint64_t{1} << 24, {{0, 96}}), "are more than 2^63");
  CursorOptions skips = options_of(100, 1, {{0, 96}});
  skips.skip = {{5, 4}};
  expect_refused(skips, "skip (5, 4) ends before it begins");
}

TEST(Cursor, ABatchOfMoreRowsThanAnyMemoryHoldsIsRefused) {
  const std::uint64_t most = std::uint64_t{1} << 34;
  EXPECT_NO_THROW(Cursor(options_of(10'000, {}, {{0, 8}, {80, most - 8}})).check({0, 8})) << "more than an epoch";
  expect_refused(
      options_of(10'000, {}, {{0, 8}, {80, most}}),
      "no memory for a batch of 2,147,483,648 rows (a global batch of 17,179,869,184 from position 80 on): a "
      "rank's batch has fewer than 2^31: use a smaller batch size");
  expect_refused(options_of(10'000, 1, {{0, 8}, {80, most}}), "no memory");
  EXPECT_NO_THROW(Cursor(options_of(80, 1, {{0, 8}, {80, most}})).check({0, 8})) << "the run is over there";
  CursorOptions padded = options_of(10'000, {}, {{0, most - 7}});
  padded.uneven = Uneven::Pad;
  expect_refused(padded, "no memory for a batch of 2,147,483,648 rows");
  expect_refused(padded, "no memory", {0, 8, UINT64_MAX - 1});
}

TEST(Cursor, HostilePositionsAndSkipsGiveNoBatchRatherThanAWrap) {
  for (const bool per_epoch : {false, true}) {
    CursorOptions options = options_of(10, {}, {{0, 4}});
    options.per_epoch = per_epoch;
    options.skip = {{50, UINT64_MAX}};
    const Cursor cursor(options);
    EXPECT_TRUE(cursor.plan(44, {}));
    EXPECT_FALSE(cursor.plan(50, {}));
    EXPECT_FALSE(cursor.plan(UINT64_MAX, {}));
    EXPECT_EQ(cursor.steps_before(UINT64_MAX), cursor.steps_before(50));
  }
}

}  // namespace
}  // namespace penstock
