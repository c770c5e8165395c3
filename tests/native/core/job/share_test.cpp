// Shares: rows by brute force, and words that say what would do.
#include "core/job/share.h"

#include "core/job/cursor.h"
#include "tests/native/message_of.h"

#include <gtest/gtest.h>

#include <vector>

namespace penstock {
namespace {

TEST(ShareTest, RowsAreTheLargestShareRoundedUpToTheMicroBatches) {
  for (std::uint64_t size = 1; size <= 70; ++size) {
    for (std::uint64_t ranks = 1; ranks <= 64; ++ranks) {
      std::vector<std::uint64_t> counts(ranks);
      for (std::uint64_t i = 0; i < size; ++i) ++counts[i % ranks];
      for (const std::uint64_t parts : {1, 2, 3, 7}) {
        std::uint64_t rows = counts.front();
        while (rows % parts != 0) ++rows;
        ASSERT_EQ(batch_rows(size, {0, ranks, parts}), rows) << size << " on " << ranks;
      }
    }
  }
  EXPECT_EQ(batch_rows(UINT64_MAX, {0, 1, 2}), UINT64_MAX) << "not 0";
  EXPECT_EQ(batch_rows(UINT64_MAX, {0, UINT64_MAX, UINT64_MAX}), UINT64_MAX);
}

TEST(ShareTest, RanksThatDivideAreTheDivisors) {
  for (std::uint64_t size = 1; size <= 3'000; ++size) {
    std::vector<std::uint64_t> all;
    for (std::uint64_t ranks = 1; ranks <= size; ++ranks) {
      if (size % ranks == 0) all.push_back(ranks);
    }
    ASSERT_EQ(ranks_that_divide(size), all) << size;
  }
  const std::uint64_t prime = 4'294'967'291;  // the largest below 2^32
  EXPECT_EQ(ranks_that_divide(2 * prime), (std::vector<std::uint64_t>{1, 2, prime, 2 * prime}));
  EXPECT_EQ(ranks_that_divide(prime * prime), (std::vector<std::uint64_t>{1, prime * prime})) << "not looked for";
  EXPECT_EQ(ranks_that_divide(std::uint64_t{1} << 63).size(), 64U);
}

void expect_words(std::uint64_t size, const Share& share, const char* words) {
  testing::expect_error([&] { check_divides(size, share); }, ErrorKind::InvalidArgument, words);
}

TEST(ShareTest, WhatDoesNotDivideIsRefusedInWordsOfWhatWouldDo) {
  EXPECT_NO_THROW(check_divides(4'000, {0, 1'000, 2}));
  expect_words(
      4'096, {0, 1'000},
      "global batch size 4,096 is not a multiple of world size 1,000: give uneven=\"pad\" (ranks get 4 or 5 "
      "rows, padded to 5), or a multiple (4,000 or 5,000), or a number of ranks that divides it (512 or 1,024)");
  expect_words(5, {0, 8},
               "(ranks get 0 or 1 rows, padded to 1), or a multiple (8), or a number of ranks that divides it (5)");
  expect_words(7, {0, 2, 3}, "(ranks get 3 or 4 rows, padded to 6)");
  expect_words(UINT64_MAX, {0, UINT64_MAX - 1}, "or a multiple (18,446,744,073,709,551,614), or a number");
}

TEST(ShareTest, AdviceSuitsMicroBatchesToo) {
  expect_words(
      12, {0, 2, 4},
      "micro_batches=4 does not divide the 6 rows that a rank has of the global batch of 12: give uneven=\"pad\", "
      "which "
      "adds rows of padding, or a global batch that suits 2 ranks of 4 micro-batches (8 or 16), or a number of ranks "
      "that suits (1 or 3)");
  expect_words(
      4'096, {0, 1'000, 2},
      "padded to 6), or a global batch that suits 1,000 ranks of 2 micro-batches (4,000 or 6,000), or a number "
      "of ranks that suits (512 or 1,024)");
  expect_words(7, {0, 2, 3}, "(6 or 12); no number of ranks suits it with these micro-batches");
  expect_words(7, {0, 2, UINT64_MAX}, "padded to 18,446,744,073,709,551,615); no number of ranks suits it");
  for (std::uint64_t size = 1; size <= 60; ++size) {
    for (std::uint64_t parts = 1; parts <= 6; ++parts) {
      std::vector<std::uint64_t> all;
      for (std::uint64_t ranks = 1; ranks <= size; ++ranks) {
        if (size % ranks == 0 && size / ranks % parts == 0) all.push_back(ranks);
      }
      ASSERT_EQ(ranks_that_suit(size, parts), all) << size << " in " << parts;
      for (const std::uint64_t ranks : all) EXPECT_NO_THROW(check_divides(size, {0, ranks, parts}));
    }
  }
}

}  // namespace
}  // namespace penstock
