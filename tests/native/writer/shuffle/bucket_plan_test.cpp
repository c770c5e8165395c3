#include "writer/shuffle/bucket_plan.h"

#include "core/base/error.h"
#include "writer/shuffle/bucket_item.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>

namespace penstock::writer {
namespace {

TEST(BucketPlan, BucketsAndTheirBuffersFitIntoMemoryAndEndWhereTheNextBegins) {
  std::mt19937_64 random(3);
  for (const std::uint64_t memory : {BucketPlanner::kLeastMemory, std::uint64_t{1} << 20, std::uint64_t{1} << 30}) {
    for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{7}}) {
      const std::uint64_t end = first + 3000;
      BucketPlanner planner(first, end, memory);
      std::uint64_t inline_bytes = 0;
      std::uint64_t large_bytes = 0;
      for (std::uint64_t destination = first; destination < end; ++destination) {
        const std::uint64_t bytes = destination % 500 == 9 ? memory / 4 : random() % 100;
        planner.add(destination, bytes);
        const bool large = bytes > memory / 8;
        inline_bytes += sizeof(ItemHeader) + (large ? sizeof(DigestBytes) : bytes);
        large_bytes += large ? bytes : 0;
      }
      const BucketPlan plan = planner.plan();
      std::uint64_t at = first;
      std::uint64_t offset = 0;
      for (const BucketPlan::Bucket& bucket : plan.buckets) {
        EXPECT_EQ(bucket.begin, at);
        EXPECT_EQ(bucket.offset, offset);
        EXPECT_LE(bucket.bytes + kTableBytes * bucket.items, memory / 4 * 3);
        at = bucket.end;
        offset += bucket.bytes;
      }
      EXPECT_EQ(at, end);
      EXPECT_EQ(offset, inline_bytes);
      EXPECT_EQ(plan.large_offset, inline_bytes);
      EXPECT_EQ(plan.scratch_bytes, inline_bytes + large_bytes);
      EXPECT_LE(plan.buffer_bytes * plan.buckets.size(), memory / 2);
      EXPECT_GE(plan.buffer_bytes, BucketPlanner::kLeastBuffer);
    }
  }
}

TEST(BucketPlan, WhatLargeDatasetsNeed) {  // as docs/cli.md says
  const auto buckets = [](std::uint64_t memory, std::uint64_t item_bytes, std::uint64_t all_bytes) {
    const std::uint64_t items = all_bytes / item_bytes;
    BucketPlanner planner(0, items, memory);
    for (std::uint64_t i = 0; i < items; ++i) planner.add(i, item_bytes);
    return planner.plan().buckets.size();
  };
  constexpr std::uint64_t kMib = 1 << 20;
  EXPECT_GT(buckets(24 * kMib, 4096, 50'000'000'000), 2500U);
  EXPECT_GT(buckets(350 * kMib, kMib, 10'000'000'000'000), 30'000U);
  EXPECT_THROW(buckets(20 * kMib, 4096, 50'000'000'000), Error);
}

TEST(BucketPlan, NothingToBeShuffledHasNoBucket) {
  const BucketPlan plan = BucketPlanner(0, 1, BucketPlanner::kLeastMemory).plan();
  EXPECT_TRUE(plan.buckets.empty());
  EXPECT_EQ(plan.scratch_bytes, 0U);
}

}  // namespace
}  // namespace penstock::writer
