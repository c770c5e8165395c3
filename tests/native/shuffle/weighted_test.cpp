// Weighted, its table of weights and the tree that rounds their draws.
#include "shuffle/weighted.h"

#include "core/base/error.h"
#include "order_checks.h"
#include "shuffle/blocks.h"
#include "shuffle/draw_tree.h"
#include "shuffle/uniform.h"
#include "shuffle/weight_table.h"
#include "tests/native/message_of.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <ranges>
#include <utility>

namespace penstock::shuffle {
namespace {

/// How often each observation comes in draws that ascend.
std::vector<std::uint64_t> counted(const std::vector<std::uint64_t>& drawn, std::size_t observations) {
  EXPECT_TRUE(std::is_sorted(drawn.begin(), drawn.end()));
  std::vector<std::uint64_t> counts(observations);
  for (const std::uint64_t index : drawn) ++counts.at(index);
  return counts;
}

std::vector<std::uint64_t> counts(const WeightTable& table, std::uint64_t draws, std::uint64_t offset) {
  std::vector<std::uint64_t> drawn;
  for (std::uint64_t draw = 0; draw < draws; ++draw) drawn.push_back(table.systematic(draw, draws, offset));
  return counted(drawn, table.size());
}

// Of both kinds of draws; those of the tree never change.
TEST(WeightTable, EachObservationComesFloorOrCeilOfItsExpectation) {
  std::mt19937_64 random(1);
  std::uint64_t all = 0;
  for (int round = 0; round < 500; ++round) {
    std::vector<std::uint64_t> weights(1 + random() % 40);
    for (std::uint64_t& weight : weights) weight = random() % 5 == 0 ? 0 : random() % 1000;
    weights[random() % weights.size()] += 1;
    const std::uint64_t draws = 1 + random() % (round % 2 == 0 ? 10 : 100);
    const WeightTable table(std::vector<double>(weights.begin(), weights.end()));
    ASSERT_EQ(table.total(), std::accumulate(weights.begin(), weights.end(), std::uint64_t{0}));
    std::vector<Pick> picks(draws);
    for (std::uint64_t i = 0; i < draws; ++i) picks[i].index = i;
    DrawTree(table, draws, Key().absorb(random())).draw(picks);
    std::vector<std::uint64_t> drawn;
    for (const Pick& pick : picks) {
      drawn.push_back(pick.index);
      all = (all ^ pick.index) * 0x100000001b3;
    }
    for (const auto& seen : {counted(drawn, weights.size()), counts(table, draws, random() % table.total())}) {
      for (std::size_t i = 0; i < weights.size(); ++i) {
        const std::uint64_t expected = weights[i] * draws;
        ASSERT_GE(seen[i], expected / table.total());
        ASSERT_LE(seen[i], (expected + table.total() - 1) / table.total());
      }
    }
  }
  EXPECT_EQ(all, 18001474763504639599U);
}

TEST(WeightTable, OffsetsMakeTheMeanExact) {
  const WeightTable table(std::vector<double>{1, 2, 4});
  std::vector<std::uint64_t> sums(3);
  for (std::uint64_t offset = 0; offset < 7; ++offset) {
    const auto seen = counts(table, 3, offset);
    for (std::size_t i = 0; i < 3; ++i) sums[i] += seen[i];
  }
  EXPECT_EQ(sums, (std::vector<std::uint64_t>{3, 6, 12}));  // of 21 draws
}

TEST(WeightTable, FractionsKeepTheirRatios) {
  for (const double scale : {1.0, 0x1p-300, 0x1p300, 0x1p1000, 1e-320}) {
    const WeightTable table(std::vector<double>{0.5 * scale, 0.25 * scale, 0, 0.25 * scale});
    EXPECT_EQ(counts(table, 8, 0), (std::vector<std::uint64_t>{4, 2, 0, 2})) << scale;
    EXPECT_LT(table.total(), std::uint64_t{1} << 63);
  }
  const std::vector<double> tenths(10, 0.1);
  EXPECT_EQ(counts(WeightTable(tenths), 10, 0), std::vector<std::uint64_t>(10, 1));
  EXPECT_NO_THROW(WeightTable(tenths).check_without_replacement(10));
}

TEST(WeightTable, LargeTablesAndManyDrawsDoNotOverflow) {
  const WeightTable table(std::vector<double>{0x1p52, 0x1p52, 0x1p52});
  const std::uint64_t draws = std::uint64_t{1} << 52;
  EXPECT_EQ(table.systematic(0, draws, 0), 0U);
  EXPECT_EQ(table.systematic(draws - 1, draws, table.total() - 1), 2U);
  EXPECT_EQ(table.systematic(draws / 2, draws, 0), 1U);
}

TEST(WeightTable, WhatIsNoWeightOrTooHeavyIsRefusedWithItsObservation) {
  const auto expect_refused = [](const std::vector<double>& weights, const std::string& words) {
    testing::expect_error([&] { const WeightTable table(weights); }, ErrorKind::InvalidArgument, words);
  };
  expect_refused({1, -2}, "weight -2 of observation 1: wanted a finite one of at least 0");
  expect_refused({std::nan("")}, "observation 0");
  expect_refused({1, 2, std::numeric_limits<double>::infinity()}, "observation 2");
  expect_refused({0, 0, 0}, "all 3 weights are 0");
  expect_refused({}, "no weights");
  expect_refused({1.7e308, 1.7e308}, "");
  const WeightTable table(std::vector<double>{1, 1, 2});
  EXPECT_NO_THROW(table.check_without_replacement(2));
  testing::expect_error([&] { table.check_without_replacement(3); }, ErrorKind::InvalidArgument,
                        "observation 2 is expected 1.500 times in 3 draws");
}

std::uint64_t drawn(const DrawTree& tree, std::uint64_t number) {
  Pick pick{number, 0, 0, 0};
  tree.draw(std::span(&pick, 1));
  return pick.index;
}

// The first draw of an observation at or after `index`, or the number of draws.
std::uint64_t first_of(const DrawTree& tree, std::uint64_t draws, std::uint64_t index) {
  const auto all = std::views::iota(std::uint64_t{0}, draws);
  return *std::ranges::partition_point(all, [&](std::uint64_t number) { return drawn(tree, number) < index; });
}

TEST(DrawTree, TheLargestTotalsAndMostDrawsDoNotOverflow) {
  constexpr double kMost = 0x1p53 - 1;
  std::vector<double> many(511, kMost);  // integers, whose sum is just below 2^62
  many[7] = 1;
  many[8] = 0;
  for (const std::vector<double>& weights :
       {many, {kMost, 0, 1, kMost}, {0.1, 0.7, 1e-17, 0.2}, {1e300, 1, 1e300}, std::vector<double>{3}}) {
    const WeightTable table(weights);
    for (const std::uint64_t draws : {std::uint64_t{1} << 52, (std::uint64_t{1} << 52) - 12345, std::uint64_t{1}}) {
      const DrawTree tree(table, draws, Key().absorb(draws));
      std::uint64_t begin = 0;
      Expected before;
      for (std::uint64_t i = 0; i < weights.size(); ++i) {
        const std::uint64_t end = first_of(tree, draws, i + 1);
        const Expected here = table.expected(i + 1, draws);
        const Expected own = here.minus(std::exchange(before, here), table.total());
        const std::uint64_t count = end - std::exchange(begin, end);
        ASSERT_GE(count, own.whole) << i << " of " << draws;
        ASSERT_LE(count, own.whole + (own.part > 0 ? 1 : 0)) << i << " of " << draws;
      }
      EXPECT_EQ(begin, draws);
    }
  }
}

TEST(DrawTree, EpochsDiffer) {
  const WeightTable table(std::vector<double>(1000, 1));
  std::set<std::vector<std::uint64_t>> sets;
  for (std::uint64_t epoch = 0; epoch < 400; ++epoch) {
    const DrawTree tree(table, 100, Key().absorb(epoch));
    std::vector<std::uint64_t> set;
    for (std::uint64_t i = 0; i < 100; ++i) set.push_back(drawn(tree, i));
    sets.insert(std::move(set));
  }
  EXPECT_GE(sets.size(), 390U);
}

const std::vector<double> kWeights{3, 0, 1, 1, 0.5, 8, 0, 2.5};  // 16

Weighted make_weighted(std::uint64_t draws, std::uint64_t seed, const BlocksShape* shape = nullptr,
                       Draws how = Draws::Rounded) {
  std::shared_ptr<const Order> inner = std::make_shared<Uniform>(draws, seed);
  if (shape != nullptr) inner = std::make_shared<Blocks>(draws, seed, *shape);
  return {WeightTable(kWeights), std::move(inner), seed, true, how};
}

TEST(Weighted, AnEpochHasFloorOrCeilOfEachExpectation) {
  const BlocksShape shape{2, 6, 3};
  for (const Draws how : {Draws::Systematic, Draws::Rounded}) {
    for (const std::uint64_t draws : {1U, 7U, 16U, 50U}) {
      const Weighted order = make_weighted(draws, 5, draws % 2 == 0 ? &shape : nullptr, how);
      for (std::uint64_t epoch = 0; epoch < 100; ++epoch) {
        std::vector<double> seen(kWeights.size());
        for (const std::uint64_t index : indices(order, epoch * draws, 1, draws)) ++seen[index];
        for (std::size_t i = 0; i < seen.size(); ++i) {
          const double expected = kWeights[i] / 16 * static_cast<double>(draws);
          ASSERT_GE(seen[i], std::floor(expected));
          ASSERT_LE(seen[i], std::ceil(expected));
        }
      }
    }
  }
}

TEST(Weighted, EpochOneOfASeedDrawsNotWhatEpochZeroOfTheNextDoes) {
  std::size_t same = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::vector<std::uint64_t> one = indices(make_weighted(50, seed), 50, 1, 50);
    const std::vector<std::uint64_t> next = indices(make_weighted(50, seed + 1), 0, 1, 50);
    same += std::is_permutation(one.begin(), one.end(), next.begin()) ? 1 : 0;
  }
  EXPECT_LT(same, 10U);
}

TEST(Weighted, WithoutReplacementNoneComesTwice) {
  const std::vector<double> weights{1, 1, 0.5, 0.25, 0.25, 1};  // 4
  const Weighted order(WeightTable(weights), std::make_shared<Uniform>(4, 1), 1, false);
  for (std::uint64_t epoch = 0; epoch < 50; ++epoch) {
    const std::vector<std::uint64_t> seen = indices(order, 4 * epoch, 1, 4);
    EXPECT_EQ(std::set<std::uint64_t>(seen.begin(), seen.end()).size(), 4U);
  }
  EXPECT_THROW(Weighted(WeightTable(weights), std::make_shared<Uniform>(5, 1), 1, false), Error);
}

TEST(Weighted, DrawsOfAnotherAlgorithmSayHowToEndThatRun) {
  const auto expect_said = [](Draws saved, Draws now, const std::string& words) {
    const std::string before = make_weighted(50, 5, nullptr, saved).identity(Order::kNever);
    const OrderDifference difference = make_weighted(50, 5, nullptr, now).difference_to(before, 0);
    EXPECT_EQ(difference.texts.empty() ? "" : difference.texts.front().text, words);
  };
  expect_said(Draws::Systematic, Draws::Rounded,
              "order's algorithm: saved 1, now 2: its draws are systematic: give draws=\"systematic\" to the order to "
              "end that run");
  expect_said(
      Draws::Rounded, Draws::Systematic,
      "order's algorithm: saved 2, now 1: its draws are rounded: leave draws= of the order out to end that run");
  expect_said(Draws::Rounded, Draws::Rounded, "");
}

}  // namespace
}  // namespace penstock::shuffle
