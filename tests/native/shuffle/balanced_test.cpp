#include "shuffle/balanced.h"

#include "core/base/error.h"
#include "order_checks.h"

#include <gtest/gtest.h>

#include <map>

namespace penstock::shuffle {
namespace {

// Class 3 has no members, and two observations are of none.
const std::vector<std::int32_t> kLabels{0, 1, 1, 4, 2, -1, 1, 0, 1, 2, -7, 1, 1};

Balanced make_balanced(std::uint64_t seed, std::uint64_t size = 13, std::uint64_t fetch = 1, std::uint64_t lanes = 1) {
  return {ClassMembers(kLabels, 5), seed, size, fetch, lanes};
}

TEST(ClassMembers, AreSortedByClassAndLeaveEmptyClassesOut) {
  const ClassMembers members(kLabels, 5);
  ASSERT_EQ(members.classes(), 4U);
  const std::vector<std::vector<std::uint64_t>> expected{{0, 7}, {1, 2, 6, 8, 11, 12}, {4, 9}, {3}};
  for (std::size_t c = 0; c < expected.size(); ++c) {
    ASSERT_EQ(members.count(c), expected[c].size());
    for (std::size_t i = 0; i < expected[c].size(); ++i) EXPECT_EQ(members.member(c, i), expected[c][i]);
  }
  EXPECT_THROW(ClassMembers(kLabels, 4), Error);
  EXPECT_THROW(ClassMembers(std::vector<std::int32_t>{-1, -1}, 3), Error);
  EXPECT_THROW(ClassMembers(std::vector<std::int32_t>(), 0), Error);
}

TEST(Balanced, EachClassComesOnceInEveryRoundWhateverTheEpochsSize) {
  for (const std::uint64_t size : {1U, 4U, 13U, 100U}) {
    const Balanced order = make_balanced(3, size);
    const std::vector<std::uint64_t> all = indices(order, 0, 1, 400);
    std::set<std::vector<std::int32_t>> orders;
    for (std::size_t round = 0; round < 100; ++round) {
      std::vector<std::int32_t> classes;
      for (std::size_t i = 0; i < 4; ++i) classes.push_back(kLabels[all[4 * round + i]]);
      orders.insert(classes);
      std::sort(classes.begin(), classes.end());
      ASSERT_EQ(classes, (std::vector<std::int32_t>{0, 1, 2, 4})) << round;
    }
    EXPECT_GT(orders.size(), 20U);  // of 24
    EXPECT_EQ(order.epoch_size(), size);
    EXPECT_EQ(picks(order, 399, 1, 1)[0].epoch, 399 / size);
  }
}

TEST(Balanced, MembersOfAClassComeOnceInEpochsOfTheirOwn) {
  std::map<std::int32_t, std::vector<std::uint64_t>> of_class;
  for (const std::uint64_t index : indices(make_balanced(3), 0, 1, 4 * 60)) of_class[kLabels[index]].push_back(index);
  std::set<std::vector<std::uint64_t>> orders;
  for (const auto& [label, seen] : of_class) {
    const auto count = std::count(kLabels.begin(), kLabels.end(), label);
    ASSERT_EQ(seen.size(), 60U);
    for (auto at = seen.begin(); at != seen.end(); at += count) {
      const std::vector<std::uint64_t> epoch(at, at + count);
      if (label == 1) orders.insert(epoch);
      EXPECT_EQ(std::set<std::uint64_t>(epoch.begin(), epoch.end()).size(), epoch.size()) << label;
    }
  }
  EXPECT_EQ(orders.size(), 10U);  // of six members: ten epochs, no two alike
}

TEST(Balanced, WhatIsReadTogetherDecidesNoPosition) {
  const Balanced order = make_balanced(3, 100);
  for (const std::uint64_t fetch : {1U, 5U, 64U, 1000U}) {
    for (const std::uint64_t lanes : {1U, 3U}) {
      const Balanced other = make_balanced(3, 100, fetch, lanes);
      EXPECT_EQ(indices(other, 7, 1, 300), indices(order, 7, 1, 300));
      EXPECT_EQ(other.identity(0), order.identity(0));
      expect_fetches_end(other, 500);
    }
  }
}

TEST(Balanced, SaysItsClassesAndRefusesWhatCannotBe) {
  std::vector<std::int32_t> other = kLabels;
  other[5] = 0;
  EXPECT_NE(Balanced(ClassMembers(other, 5), 3, 13, 1, 1).identity(9), make_balanced(3).identity(9));
  EXPECT_THROW(make_balanced(3, 13, 0), Error);
  EXPECT_THROW(make_balanced(3, 13, 1, 0), Error);
}

}  // namespace
}  // namespace penstock::shuffle
