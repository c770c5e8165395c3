// What batches and fetches may take of the memory that is allowed.
#include "core/engine/memory_bound.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace penstock::testing {
namespace {

TEST(MemoryBound, BatchesMayFillWhatSourcesLeave) {
  MemoryBound bound(1'000, 100, 3);
  EXPECT_TRUE(bound.allows_batch(900, 0)) << "what sources keep is not theirs";
  EXPECT_TRUE(bound.allows_batch(100, 800));
  EXPECT_FALSE(bound.allows_batch(101, 800));
  EXPECT_EQ(bound.limit(10), 900U);
  MemoryBound none(1'000, 2'000, 3);
  EXPECT_EQ(none.left_for_fetches(0), 0U);
  EXPECT_TRUE(none.allows_batch(500, 1'000)) << "what is needed to go on";
  EXPECT_FALSE(none.allows_batch(500, 1'001));
}

TEST(MemoryBound, SoManyBatchesAlwaysFit) {
  MemoryBound bound(1'000, 100, 3);
  bound.note_batch(500);
  bound.note_batch(400);
  EXPECT_EQ(bound.largest_batch(), 500U);
  EXPECT_TRUE(bound.allows_batch(500, 1'000));
  EXPECT_FALSE(bound.allows_batch(500, 1'001));
  EXPECT_TRUE(bound.allows_batch(700, 1'400)) << "as large as the one that is asked for";
  EXPECT_EQ(bound.limit(bound.largest_batch()), 1'500U);
  bound.add_fetched(1'000'000);
  EXPECT_TRUE(bound.allows_batch(500, 1'000)) << "whatever fetches hold";
}

TEST(MemoryBound, FetchesTakeWhatBatchesLeave) {
  MemoryBound bound(1'000, 0, 3);
  EXPECT_EQ(bound.left_for_fetches(0), 1'000U);
  EXPECT_EQ(bound.left_for_fetches(300), 700U);
  bound.note_batch(200);
  EXPECT_EQ(bound.left_for_fetches(300), 400U) << "three batches of the largest size are to fit";
  EXPECT_EQ(bound.left_for_fetches(700), 300U);
  bound.add_fetched(150);
  EXPECT_EQ(bound.left_for_fetches(0), 250U);
  EXPECT_FALSE(bound.allows_batch(200, 651)) << "batches take what fetches leave";
  EXPECT_TRUE(bound.allows_batch(200, 650));
  bound.add_fetched(10'000);
  EXPECT_EQ(bound.left_for_fetches(0), 0U);
  bound.remove_fetched(10'150);
  EXPECT_EQ(bound.fetched(), 0U);
  EXPECT_EQ(bound.left_for_fetches(2'000), 0U);
}

TEST(MemoryBound, ThreadsCountTogether) {
  MemoryBound bound(1U << 30, 0, 3);
  std::vector<std::thread> threads;
  for (std::uint64_t number = 1; number <= 4; ++number) {
    threads.emplace_back([&bound, number] {
      for (std::uint64_t i = 0; i < 10'000; ++i) {
        bound.note_batch(i * 4 + number);
        bound.add_fetched(number);
        bound.remove_fetched(number - 1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(bound.largest_batch(), 9'999U * 4 + 4);
  EXPECT_EQ(bound.fetched(), 40'000U);
}

}  // namespace
}  // namespace penstock::testing
