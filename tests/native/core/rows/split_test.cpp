// Splits: a partition, in constant time, that stays when observations are appended.
#include "core/rows/split.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace penstock {
namespace {

std::set<std::uint64_t> part_of(const Split& split, std::uint64_t size) {
  std::set<std::uint64_t> found;
  std::uint64_t last = 0;
  for (std::uint64_t i = 0; i < split.count(size); ++i) {
    const std::uint64_t at = split.at(i);
    EXPECT_LT(at, size);
    EXPECT_TRUE(i == 0 || at > last) << "in order, each once";
    last = at;
    found.insert(at);
  }
  return found;
}

TEST(SplitTest, BothPartsAreAllObservationsAndOneOfEachWholeRunIsHeldOut) {
  for (const std::uint64_t one_in : {2U, 3U, 10U, 64U}) {
    for (std::uint64_t size = 0; size < 300; ++size) {
      const std::set<std::uint64_t> train = part_of({one_in, 7, false}, size);
      const std::set<std::uint64_t> held = part_of({one_in, 7, true}, size);
      ASSERT_EQ(train.size() + held.size(), size);
      std::map<std::uint64_t, int> runs;
      for (const std::uint64_t at : held) {
        ASSERT_EQ(train.count(at), 0U);
        ++runs[at / one_in];
      }
      for (std::uint64_t run = 0; run < size / one_in; ++run) ASSERT_EQ(runs[run], 1);
    }
  }
}

TEST(SplitTest, WhatIsHeldOutStaysWhenObservationsAreAppended) {
  const Split split{10, 3, true};
  const std::set<std::uint64_t> before = part_of(split, 995);
  const std::set<std::uint64_t> after = part_of(split, 10'000);
  for (const std::uint64_t at : after) EXPECT_EQ(before.count(at), at < 995 ? 1U : 0U);
}

TEST(SplitTest, SlotsAreSpreadAndSeedsDiffer) {
  std::map<std::uint64_t, int> slots;
  int same = 0;
  for (std::uint64_t run = 0; run < 10'000; ++run) {
    ++slots[Split{10, 1}.slot(run)];
    same += Split{10, 1}.slot(run) == Split{10, 2}.slot(run) ? 1 : 0;
  }
  EXPECT_EQ(slots.size(), 10U);
  for (const auto& [slot, count] : slots) EXPECT_NEAR(count, 1'000, 150) << slot;
  EXPECT_NEAR(same, 1'000, 150);
}

}  // namespace
}  // namespace penstock
