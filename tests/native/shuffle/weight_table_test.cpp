#include "shuffle/weight_table.h"

#include "core/base/error.h"
#include "tests/native/message_of.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace penstock::shuffle {
namespace {

std::vector<std::uint64_t> counts(const WeightTable& table, std::uint64_t draws, std::uint64_t offset) {
  std::vector<std::uint64_t> result(table.size());
  std::uint64_t last = 0;
  for (std::uint64_t draw = 0; draw < draws; ++draw) {
    const std::uint64_t index = table.systematic(draw, draws, offset);
    EXPECT_GE(index, last);  // they ascend
    last = index;
    ++result[index];
  }
  return result;
}

TEST(WeightTable, EachObservationComesFloorOrCeilOfItsExpectation) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<double> weights(1 + random() % 30);
    for (double& weight : weights) weight = static_cast<double>(random() % 5 == 0 ? 0 : random() % 1000);
    weights[random() % weights.size()] += 1;
    const WeightTable table(weights);
    double sum = 0;
    for (const double weight : weights) sum += weight;
    ASSERT_EQ(table.total(), static_cast<std::uint64_t>(sum));  // integers stay what they are
    const std::uint64_t draws = 1 + random() % 100;
    const std::vector<std::uint64_t> seen = counts(table, draws, random() % table.total());
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const std::uint64_t expected = static_cast<std::uint64_t>(weights[i]) * draws;
      ASSERT_GE(seen[i], expected / table.total());
      ASSERT_LE(seen[i], (expected + table.total() - 1) / table.total());
    }
  }
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

std::string refusal(const std::vector<double>& weights) {
  return testing::message_of([&] { const WeightTable table(weights); }, ErrorKind::InvalidArgument);
}

TEST(WeightTable, WhatIsNoWeightIsRefusedWithItsObservation) {
  EXPECT_EQ(refusal({1, -2}), "weight -2 of observation 1: wanted a finite one of at least 0");
  EXPECT_NE(refusal({std::nan("")}).find("observation 0"), std::string::npos);
  EXPECT_NE(refusal({1, 2, std::numeric_limits<double>::infinity()}).find("observation 2"), std::string::npos);
  EXPECT_EQ(refusal({0, 0, 0}), "all 3 weights are 0");
  EXPECT_EQ(refusal({}), "no weights");
  EXPECT_NE(refusal({1.7e308, 1.7e308}), "");
}

TEST(WeightTable, TooHeavyForDrawsWithoutReplacementNamesTheObservation) {
  const WeightTable table(std::vector<double>{1, 1, 2});
  EXPECT_NO_THROW(table.check_without_replacement(2));
  testing::expect_error([&] { table.check_without_replacement(3); }, ErrorKind::InvalidArgument,
                        "observation 2 is expected 1.500 times in 3 draws");
}

}  // namespace
}  // namespace penstock::shuffle
