// Splits: a partition, in constant time, that stays when observations are appended.
#include "core/rows/split.h"

#include "core/base/error.h"
#include "core/rows/sub_view.h"

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

class Nothing final : public Source {
 public:
  Nothing() {
    info_.size = 100;
    info_.identity.view = R"({"kind":"nothing"})";
  }
  [[nodiscard]] const SourceInfo& info() const override { return info_; }
  bool plan(Row& /*row*/, unsigned /*round*/, Parts /*wanted*/, Reads& /*out*/) const override { return false; }
  void spans(const Row& /*row*/, SpanTable& /*out*/) const override {}

 private:
  SourceInfo info_;
};

TEST(SplitTest, PartsOfPartsAreNamedInTheirOrder) {
  const auto base = std::make_shared<Nothing>();
  const auto train = std::make_shared<SubView>(base, Split{10, 0, false});
  EXPECT_EQ(train->info().identity.view, R"({"kind":"nothing","split":{"held_out":false,"one_in":10,"seed":0}})");
  const auto part = std::make_shared<SubView>(train, SliceRange{5, 2, 10});
  EXPECT_EQ(part->info().size, 10U);
  EXPECT_EQ(part->base_index(3), (Split{10, 0, false}.at(11)));
  EXPECT_EQ(part->info().identity.view, R"({"kind":"nothing","split":{"held_out":false,"one_in":10,"seed":0},)"
                                        R"("slice2":{"count":10,"first":5,"step":2}})");
  EXPECT_THROW(SubView(base, Split{1, 0, false}), Error);
}

}  // namespace
}  // namespace penstock
