#include "core/job/epochs.h"

#include "core/base/error.h"
#include "core/job/cursor.h"
#include "core/job/order.h"

#include <gtest/gtest.h>

#include <vector>

namespace penstock {
namespace {

TEST(EpochsTest, EveryPositionLiesInTheEpochThatCountingFinds) {
  const Epochs epochs({{0, 3}, {6, 5}, {11, 5}, {21, 1}, {24, 8}});
  std::vector<std::uint64_t> begins;
  for (const std::uint64_t size : {3U, 3U, 5U, 5U, 5U, 1U, 1U, 1U, 8U, 8U}) {
    begins.push_back(begins.empty() ? 0 : begins.back() + epochs.size(begins.back()));
    EXPECT_EQ(epochs.size(begins.back()), size);
  }
  for (std::uint64_t position = 0; position < 40; ++position) {
    std::uint64_t number = 0;
    while (number + 1 < begins.size() && begins[number + 1] <= position) ++number;
    EXPECT_EQ(epochs.number(position), number) << position;
    EXPECT_EQ(epochs.begin(position), begins[number]) << position;
  }
  for (std::uint64_t number = 0; number < begins.size(); ++number) EXPECT_EQ(epochs.begin_of(number), begins[number]);
  EXPECT_EQ(epochs.next_size(0), 6U);
  EXPECT_EQ(epochs.next_size(5), 6U);
  EXPECT_EQ(epochs.next_size(6), 11U);
  EXPECT_EQ(epochs.next_size(24), Order::kNever);
}

TEST(EpochsTest, NoEpochBeginsBeyondTheLastPosition) {
  EXPECT_EQ(Epochs({{0, kMostPosition}}).begin_of(1), kMostPosition);
  EXPECT_EQ(Epochs({{0, kMostPosition}}).begin_of(2), std::nullopt);
  EXPECT_EQ(Epochs({{0, 3}, {3, 1000}}).begin_of(UINT64_MAX), std::nullopt);
}

TEST(EpochsTest, WhatCannotBeIsRefused) {
  const EpochSizes wrong[] = {{}, {{1, 3}}, {{0, 0}}, {{0, kMostPosition + 1}}, {{0, 3}, {4, 5}}, {{0, 3}, {0, 5}}};
  for (const EpochSizes& sizes : wrong) EXPECT_THROW((void)Epochs(sizes), Error);
  EXPECT_THROW((void)Epochs({{0, 3}, {6, 5}, {3, 7}}), Error);
  EXPECT_THROW((void)Epochs({{0, 3}, {kMostPosition + 2, 5}}), Error);
}

}  // namespace
}  // namespace penstock
