#include "core/rows/sub_view.h"

#include "core/base/error.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace penstock {
namespace {

/// Ten observations; notes which are asked for.
class Noting final : public Source {
 public:
  Noting() {
    info_.size = 10;
    info_.identity.view = R"({"kind":"noting"})";
  }
  [[nodiscard]] const SourceInfo& info() const override { return info_; }
  bool plan(Row& row, unsigned round, Parts /*wanted*/, Reads& /*out*/) const override {
    asked.push_back(row.index);
    if (row.index == 9) raise(ErrorKind::Corruption, "the last one");
    return round == 0;
  }
  void spans(const Row& /*row*/, SpanTable& out) const override { out.emplace_back(); }

  mutable std::vector<std::uint64_t> asked;

 private:
  SourceInfo info_;
};

template <typename Numbers>
std::vector<std::uint64_t> asked_by(const Numbers& numbers) {
  const auto base = std::make_shared<Noting>();
  const SubView slice(base, numbers);
  Row row;
  Reads reads;
  for (std::uint64_t i = 0; i < slice.info().size; ++i) {
    row.restart(i, 0);
    for (unsigned round = 0; round < 2; ++round) {
      try {
        slice.plan(row, round, Parts::All, reads);
      } catch (const Error&) {
      }
      EXPECT_EQ(row.index, i);  // also where the source throws
    }
  }
  return base->asked;
}

TEST(SubView, NumbersAreThoseOfTheSourceInEveryRoundAndTheViewSaysWhichPartItIs) {
  using Numbers = std::vector<std::uint64_t>;
  EXPECT_EQ(asked_by(SliceRange{3, 1, 2}), (Numbers{3, 3, 4, 4}));
  EXPECT_EQ(asked_by(SliceRange{1, 4, 3}), (Numbers{1, 1, 5, 5, 9, 9}));
  EXPECT_EQ(asked_by(SliceRange{9, -9, 2}), (Numbers{9, 9, 0, 0}));
  EXPECT_EQ(asked_by(SliceRange{70, 1, 0}), Numbers());
  EXPECT_EQ(asked_by(Numbers{9, 0, 4}), (Numbers{9, 9, 0, 0, 4, 4}));
  EXPECT_EQ(asked_by(Numbers()), Numbers());
  const auto base = std::make_shared<Noting>();
  const auto view = [&](const auto& numbers) { return SubView(base, numbers).info().identity.view; };
  EXPECT_EQ(view(SliceRange{9, -2, 4}), R"({"kind":"noting","slice":{"count":4,"first":9,"step":-2}})");
  const std::string table = view(Numbers{9, 0, 4});
  EXPECT_TRUE(table.starts_with(R"({"kind":"noting","selection":{"count":3,"digest":")")) << table;
  EXPECT_NE(table, view(Numbers{0, 9, 4}));
  const auto train = std::make_shared<SubView>(base, Split{5, 0, false});
  EXPECT_EQ(train->info().identity.view, R"({"kind":"noting","split":{"held_out":false,"one_in":5,"seed":0}})");
  const auto part = std::make_shared<SubView>(train, SliceRange{1, 2, 3});
  EXPECT_EQ(part->info().size, 3U);
  EXPECT_EQ(part->base_index(2), (Split{5, 0, false}.at(5)));
  EXPECT_EQ(part->info().identity.view, R"({"kind":"noting","split":{"held_out":false,"one_in":5,"seed":0},)"
                                        R"("slice2":{"count":3,"first":1,"step":2}})");
}

TEST(SubView, WhatLiesBeyondTheSourceOrIsThereTwiceIsRefused) {
  const auto base = std::make_shared<Noting>();
  const std::vector<SliceRange> wrong{{0, 0, 1},          {10, 1, 1}, {0, 1, 11},        {9, 1, 2},
                                      {0, -1, 2},         {1, 9, 2},  {5, INT64_MIN, 2}, {5, INT64_MAX, 3},
                                      {5, 1, UINT64_MAX}, {0, 2, 6},  {UINT64_MAX, 1, 2}};
  for (const SliceRange& range : wrong) EXPECT_THROW(SubView(base, range), Error) << range.first << " " << range.step;
  for (const std::vector<std::uint64_t>& table : {std::vector<std::uint64_t>{1, 2, 1}, {10}, {0, UINT64_MAX}}) {
    EXPECT_THROW(SubView(base, table), Error);
  }
  EXPECT_THROW(SubView(base, Split{1, 0, false}), Error);
}

TEST(SubView, PartsOfUnitsAreThoseOfTheUnitsInTheirWholeView) {
  const auto units = [](const auto& numbers) {  // of five, in whose place the source has ten parts
    return std::make_shared<SubView>(std::make_shared<SubView>(std::make_shared<Noting>(), SliceRange{0, 1, 5}),
                                     numbers);
  };
  const auto whole = std::make_shared<Noting>();
  const auto bases = [&](const std::shared_ptr<SubView>& of) {
    const SubView cut(whole, UnitParts{of, 2});
    std::vector<std::uint64_t> found;
    for (std::uint64_t i = 0; i < cut.info().size; ++i) found.push_back(cut.base_index(i));
    return found;
  };
  EXPECT_EQ(bases(units(SliceRange{3, -2, 2})), (std::vector<std::uint64_t>{6, 7, 2, 3}));
  EXPECT_EQ(bases(units(std::vector<std::uint64_t>{4, 0})), (std::vector<std::uint64_t>{8, 9, 0, 1}));
  std::vector<std::uint64_t> all;
  for (const bool held_out : {false, true}) {
    for (const std::uint64_t base : bases(units(Split{3, 1, held_out}))) all.push_back(base);
  }
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, (std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  for (const std::uint64_t parts : {std::uint64_t{0}, std::uint64_t{3}, UINT64_MAX}) {
    EXPECT_THROW(SubView(whole, UnitParts{units(SliceRange{0, 1, 5}), parts}), Error);
  }
}

}  // namespace
}  // namespace penstock
