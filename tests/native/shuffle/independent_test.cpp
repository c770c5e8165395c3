// Independent: draws by the weights alone, and that nothing else shows in them.
#include "shuffle/independent.h"

#include "core/base/error.h"
#include "order_checks.h"
#include "shuffle/uniform.h"
#include "shuffle/weighted.h"
#include "tests/native/message_of.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace penstock::shuffle {
namespace {

const std::vector<double> kShares{1, 0, 3, 2, 0, 6, 4, 0};
constexpr std::uint64_t kTotal = 16;

Independent drawing(std::uint64_t size, std::uint64_t seed = 7, std::uint64_t fetch = 1, std::uint64_t lanes = 1) {
  return {WeightTable(kShares), seed, size, fetch, lanes};
}

/// The sum of (seen - expected)^2 / expected; cells that expect nothing must have nothing.
double chi_square(const std::vector<std::uint64_t>& seen, const std::vector<double>& expected) {
  double sum = 0;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const double off = static_cast<double>(seen[i]) - expected[i];
    if (expected[i] > 0) sum += off * off / expected[i];
    EXPECT_TRUE(expected[i] > 0 || seen[i] == 0) << i;
  }
  return sum;
}

std::vector<double> expected_of(double draws) {
  std::vector<double> out;
  for (const double share : kShares) out.push_back(draws * share / kTotal);
  return out;
}

/// How often each pair of observations comes, of draws that are `apart` from one another.
double chi_square_of_pairs(const std::vector<std::uint64_t>& first, const std::vector<std::uint64_t>& second) {
  const std::size_t n = kShares.size();
  std::vector<std::uint64_t> seen(n * n);
  for (std::size_t i = 0; i < first.size(); ++i) ++seen[first[i] * n + second[i]];
  std::vector<double> expected;
  for (const double one : kShares) {
    for (const double other : kShares) {
      expected.push_back(static_cast<double>(first.size()) * one * other / (kTotal * kTotal));
    }
  }
  return chi_square(seen, expected);
}

constexpr std::size_t kDraws = 200'000;
// Four degrees of freedom: above it once in 10^6; pairs of five observations have 24.
constexpr double kMost = 33.4;
constexpr double kMostOfPairs = 71.6;

TEST(Independent, CountsAreThoseOfDrawsWithReplacement) {
  for (const std::uint64_t seed : {0U, 1U, 12'345U}) {
    const Independent order = drawing(kDraws, seed);
    std::vector<std::uint64_t> seen(kShares.size());
    for (const std::uint64_t index : indices(order, 0, 1, kDraws)) ++seen.at(index);
    EXPECT_LT(chi_square(seen, expected_of(kDraws)), kMost) << seed;
  }
}

// Rounded draws would give each observation floor or ceil of its expectation in every epoch.
TEST(Independent, CountsOfAnEpochVaryAsBinomialOnesDo) {
  constexpr std::uint64_t kSize = 64;
  constexpr std::uint64_t kEpochs = 4'000;
  const Independent order = drawing(kSize);
  const std::vector<std::uint64_t> drawn = indices(order, 0, 1, kSize * kEpochs);
  double squares = 0;
  for (std::uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
    double count = 0;
    for (std::uint64_t i = 0; i < kSize; ++i) count += drawn[epoch * kSize + i] == 5 ? 1 : 0;
    const double off = count - kSize * kShares[5] / kTotal;
    squares += off * off;
  }
  const double variance = kSize * (kShares[5] / kTotal) * (1 - kShares[5] / kTotal);
  EXPECT_NEAR(squares / kEpochs, variance, 0.1 * variance);
}

TEST(Independent, PairsOfDrawsEpochsAndSeedsAreIndependent) {
  const Independent order = drawing(kDraws);
  const std::vector<std::uint64_t> drawn = indices(order, 0, 1, kDraws + 1024);
  for (const std::size_t apart : {1U, 2U, 7U, 64U, 1024U}) {
    const std::vector<std::uint64_t> first(drawn.begin(), drawn.begin() + kDraws);
    const std::vector<std::uint64_t> second(drawn.begin() + static_cast<std::ptrdiff_t>(apart),
                                            drawn.begin() + static_cast<std::ptrdiff_t>(apart + kDraws));
    EXPECT_LT(chi_square_of_pairs(first, second), kMostOfPairs) << apart;
  }
  const std::vector<std::uint64_t> first = indices(order, 0, 1, kDraws);
  EXPECT_LT(chi_square_of_pairs(first, indices(order, kDraws, 1, kDraws)), kMostOfPairs) << "the next epoch";
  EXPECT_LT(chi_square_of_pairs(first, indices(drawing(kDraws, 8), 0, 1, kDraws)), kMostOfPairs) << "the next seed";
  EXPECT_LT(chi_square_of_pairs(first, indices(drawing(kDraws, 0), kDraws, 1, kDraws)), kMostOfPairs);
}

TEST(Independent, KeepsThePromisesOfOrders) {
  for (const std::uint64_t fetch : {1U, 6U}) {
    const Independent order = drawing(61, 3, fetch, 4);
    expect_strides_agree(order);
    expect_fetches_end(order, 3 * 61);
    EXPECT_EQ(indices(order, 0, 1, 200), indices(drawing(61, 3), 0, 1, 200)) << "fetches decide no draw";
    EXPECT_EQ(order.identity(Order::kNever), drawing(61, 3).identity(0));
  }
}

TEST(Independent, LargeTotalsPassOverHashesThatWouldFavourSome) {
  // One hash in twelve is passed over.
  const Independent order(WeightTable(std::vector<double>(342, 0x1p52)), 5, 1'000'000, 1, 1);
  std::vector<std::uint64_t> seen(342);
  for (const std::uint64_t index : indices(order, 0, 1, 342'000)) ++seen.at(index);
  EXPECT_LT(chi_square(seen, std::vector<double>(342, 1'000)), 341 + 5 * 26.1);
}

TEST(Independent, StatesOfOtherDrawsAreRefusedWithTheWayOut) {
  const Independent order = drawing(60);
  const auto mixed = std::make_shared<Uniform>(60, 7);
  const Weighted rounded(WeightTable(kShares), mixed, 7, true);
  const auto text = [](const Order& now, const Order& saved) {
    std::string out;
    for (const auto& each : now.difference_to(saved.identity(Order::kNever), 10).texts) out += each.text + "; ";
    return out;
  };
  EXPECT_NE(text(rounded, order).find("give draws=\"independent\" to the order to go on"), std::string::npos);
  EXPECT_NE(text(order, rounded).find("saved 2, now 3: its draws are rounded: leave draws="), std::string::npos);
  EXPECT_EQ(text(order, drawing(60)), "");
  EXPECT_NE(text(order, drawing(61)), "");
}

TEST(Independent, WhatCannotBeDrawnIsRefused) {
  testing::expect_error([] { drawing(0); }, ErrorKind::InvalidArgument, "order weighted of 0 observations");
  testing::expect_error([] { drawing(5, 0, 0); }, ErrorKind::InvalidArgument, "fetch 0");
  testing::expect_error([] { drawing(5, 0, 1, 0); }, ErrorKind::InvalidArgument, "lanes 0");
}

}  // namespace
}  // namespace penstock::shuffle
