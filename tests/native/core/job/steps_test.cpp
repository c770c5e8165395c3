#include "core/job/steps.h"

#include "tests/native/message_of.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

// Batches of runs that end are compared with plain loops in cursor_test.cpp.
void expect_refused_step(const Cursor& cursor, std::uint64_t step, const std::string& words) {
  testing::expect_error([&] { static_cast<void>(begin_of_step(cursor, step)); }, ErrorKind::InvalidArgument, words);
}

TEST(Steps, AStepThatIsNotThereIsRefusedWithTheCount) {
  CursorOptions options;
  options.epoch_size = 10;
  options.epochs = 2;
  options.schedule = {{0, 8}};
  expect_refused_step(Cursor(options), 3, "step 3: the run has 3 batches, numbered from 0");
  expect_refused_step(Cursor(options), UINT64_MAX, "numbered from 0");
  EXPECT_EQ(begin_of_step(Cursor(options), 2), 16U);
}

TEST(Steps, AnEndlessRunHasThemToTheEndOfPositions) {
  CursorOptions options;
  options.epoch_size = 1000;
  options.schedule = {{0, 3}, {999'999, 1024}};
  const Cursor cursor(options);
  for (const std::uint64_t step : {0, 1, 99}) EXPECT_EQ(begin_of_step(cursor, step), 3 * step);
  EXPECT_EQ(begin_of_step(cursor, 333'333 + 5), 999'999U + 5 * 1024);
  const std::uint64_t most = (kMostPosition - 999'999) / 1024 + 333'333;
  EXPECT_EQ(begin_of_step(cursor, most - 1), 999'999 + (most - 1 - 333'333) * 1024);
  expect_refused_step(cursor, most, "below position 2^63 there are");
}

}  // namespace
}  // namespace penstock
