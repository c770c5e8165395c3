// Bucketed equals its definition at every position, for sizes, pools and buckets that divide nothing.
#include "shuffle/bucketed.h"

#include "core/base/error.h"
#include "order_checks.h"
#include "shuffle/uniform.h"

#include <gtest/gtest.h>

#include <random>

namespace penstock::shuffle {
namespace {

std::vector<std::uint32_t> some_lengths(std::uint64_t size) {
  std::mt19937_64 random(size);
  std::vector<std::uint32_t> lengths(size);
  for (auto& length : lengths) length = static_cast<std::uint32_t>(random() % 50);
  return lengths;
}

TEST(BucketedTest, BucketsOfAPoolAreThoseOfItsSortedUniformOrder) {
  for (const std::uint64_t size : {1U, 2U, 63U, 100U, 1'000U}) {
    const std::vector<std::uint32_t> lengths = some_lengths(size);
    const Uniform uniform(size, 5);
    for (const auto& [pool, bucket] :
         std::vector<std::pair<std::uint64_t, std::uint64_t>>{{1, 1}, {7, 3}, {64, 64}, {100, 9}, {5'000, 10}}) {
      const Bucketed order(lengths, 5, pool, bucket);
      for (std::uint64_t begin = 0; begin < 3 * size;) {
        const std::uint64_t count = std::min(pool - begin % size % pool, size - begin % size);
        std::vector<std::uint64_t> wanted = indices(uniform, begin, 1, count);
        std::stable_sort(wanted.begin(), wanted.end(),
                         [&](std::uint64_t a, std::uint64_t b) { return lengths[a] < lengths[b]; });
        const std::vector<std::uint64_t> seen = indices(order, begin, 1, count);
        const auto buckets_of = [&, step = static_cast<std::ptrdiff_t>(bucket)](const std::vector<std::uint64_t>& all) {
          std::multiset<std::vector<std::uint64_t>> buckets;
          for (auto at = all.begin(); all.end() - at >= step; at += step) buckets.emplace(at, at + step);
          return buckets;
        };
        ASSERT_EQ(buckets_of(wanted), buckets_of(seen)) << size << " " << pool << " " << bucket << " at " << begin;
        const auto rest = static_cast<std::ptrdiff_t>(count / bucket * bucket);
        ASSERT_TRUE(std::equal(wanted.begin() + rest, wanted.end(), seen.begin() + rest));
        begin += count;
      }
    }
  }
}

TEST(BucketedTest, BucketsAreInAnOrderOfTheirOwnInEveryPoolAndEpoch) {
  const std::vector<std::uint32_t> lengths = some_lengths(8'192);
  const Bucketed order(lengths, 1, 4'096, 64);
  std::set<std::vector<std::uint32_t>> orders;
  std::uint64_t longest_last = 0;
  for (std::uint64_t pool = 0; pool < 6; ++pool) {
    std::vector<std::uint32_t> shortest;
    for (const std::uint64_t index : indices(order, pool * 4'096, 64, 64)) shortest.push_back(lengths[index]);
    EXPECT_FALSE(std::is_sorted(shortest.begin(), shortest.end()));
    longest_last += shortest.back() == *std::max_element(shortest.begin(), shortest.end()) ? 1 : 0;
    orders.insert(shortest);
  }
  EXPECT_EQ(orders.size(), 6U);
  EXPECT_LT(longest_last, 6U) << "the last full bucket is mixed too";
}

TEST(BucketedTest, WhatCannotBeIsRefusedAndLengthsAreInTheIdentity) {
  EXPECT_THROW(Bucketed({1}, 0, 0, 1), Error);
  EXPECT_THROW(Bucketed({1}, 0, 4, 0), Error);
  EXPECT_THROW(Bucketed({1}, 0, 4, 5), Error);
  const Bucketed one({1, 2, 3}, 7, 4, 2);
  EXPECT_NE(one.identity(0), Bucketed({1, 2, 4}, 7, 4, 2).identity(0));
  EXPECT_TRUE(one.identity(0).starts_with(R"({"algorithm":1,"bucket":2,"lengths":")")) << one.identity(0);
}

}  // namespace
}  // namespace penstock::shuffle
