#include "core/job/steps.h"

#include "tests/native/message_of.h"

#include <gtest/gtest.h>

#include <random>

namespace penstock {
namespace {

void expect_refused_step(const Cursor& cursor, std::uint64_t step, const std::string& words) {
  testing::expect_error([&] { static_cast<void>(begin_of_step(cursor, step)); }, ErrorKind::InvalidArgument, words);
}

// Walks the run batch by batch.
void expect_begins(const Cursor& cursor, std::uint64_t most) {
  std::uint64_t position = 0;
  std::uint64_t step = 0;
  for (; step < most; ++step) {
    const auto plan = cursor.plan(position, Share{});
    if (!plan) break;
    const std::uint64_t found = begin_of_step(cursor, step);
    EXPECT_EQ(cursor.plan(found, Share{})->position, plan->position) << "step " << step;
    EXPECT_LE(position, found);
    EXPECT_LE(found, plan->position);
    EXPECT_EQ(cursor.steps_before(found), step);
    position = plan->end;
  }
  if (step == most) return;
  expect_refused_step(cursor, step, "numbered from 0");
  expect_refused_step(cursor, UINT64_MAX, "numbered from 0");
}

TEST(Steps, EveryBatchOfARunBeginsWhereItIsPlanned) {
  std::mt19937_64 random(3);
  const auto below = [&](std::uint64_t end) { return random() % end; };
  for (int round = 0; round < 300; ++round) {
    CursorOptions options;
    options.epoch_size = 1 + below(40);
    options.epochs = 1 + below(3);
    options.per_epoch = below(2) == 0;
    options.tail = below(2) == 0 ? Tail::Pad : Tail::Drop;
    const std::uint64_t end = options.epoch_size * *options.epochs;
    for (std::uint64_t k = below(3); k > 0; --k) {
      const std::uint64_t begin = below(end);
      options.skip.emplace_back(begin, begin + below(12));
    }
    options.schedule = {{0, 1 + below(9)}};
    if (below(2) == 0) options.schedule.emplace_back(1 + below(end), 1 + below(9));
    const std::uint64_t stage = 1 + below(20);
    if (below(3) == 0) options.stage_end = [=](std::uint64_t p) { return p < stage ? stage : UINT64_MAX; };
    SCOPED_TRACE(round);
    expect_begins(Cursor(options), 1000);
  }
}

TEST(Steps, AStepThatIsNotThereIsRefusedWithTheCount) {
  CursorOptions options;
  options.epoch_size = 10;
  options.epochs = 2;
  options.schedule = {{0, 8}};
  expect_refused_step(Cursor(options), 3, "step 3: the run has 3 batches, numbered from 0");
  EXPECT_EQ(begin_of_step(Cursor(options), 2), 16U);
}

TEST(Steps, AnEndlessRunHasThemToTheEndOfPositions) {
  CursorOptions options;
  options.epoch_size = 1000;
  options.schedule = {{0, 3}, {999'999, 1024}};
  const Cursor cursor(options);
  expect_begins(cursor, 100);
  EXPECT_EQ(begin_of_step(cursor, 333'333 + 5), 999'999U + 5 * 1024);
  const std::uint64_t most = (kMostPosition - 999'999) / 1024 + 333'333;
  EXPECT_EQ(begin_of_step(cursor, most - 1), 999'999 + (most - 1 - 333'333) * 1024);
  expect_refused_step(cursor, most, "below position 2^63 there are");
}

}  // namespace
}  // namespace penstock
