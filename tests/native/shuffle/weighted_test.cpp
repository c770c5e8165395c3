#include "shuffle/weighted.h"

#include "core/base/error.h"
#include "order_checks.h"
#include "shuffle/blocks.h"
#include "shuffle/uniform.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

namespace penstock::shuffle {
namespace {

const std::vector<double> kWeights{3, 0, 1, 1, 0.5, 8, 0, 2.5};  // 16

Weighted make_weighted(std::uint64_t draws, std::uint64_t seed, const BlocksShape* shape = nullptr,
                       Draws how = Draws::Rounded) {
  std::shared_ptr<const Order> inner = std::make_shared<Uniform>(draws, seed);
  if (shape != nullptr) inner = std::make_shared<Blocks>(draws, seed, *shape);
  return {WeightTable(kWeights), std::move(inner), seed, true, how};
}

TEST(Weighted, AnEpochHasFloorOrCeilOfEachExpectationAndTheMeanIsRight) {
  const BlocksShape shape{2, 6, 3};
  for (const Draws how : {Draws::Systematic, Draws::Rounded}) {
    for (const std::uint64_t draws : {1U, 7U, 16U, 50U}) {
      const Weighted order = make_weighted(draws, 5, draws % 2 == 0 ? &shape : nullptr, how);
      constexpr std::uint64_t kEpochs = 400;
      std::vector<double> sums(kWeights.size());
      for (std::uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
        std::vector<double> seen(kWeights.size());
        for (const Pick& pick : picks(order, epoch * draws, 1, draws)) {
          ASSERT_EQ(pick.epoch, epoch);
          ++seen[pick.index];
        }
        for (std::size_t i = 0; i < seen.size(); ++i) {
          const double expected = kWeights[i] / 16 * static_cast<double>(draws);
          ASSERT_GE(seen[i], std::floor(expected));
          ASSERT_LE(seen[i], std::ceil(expected));
          sums[i] += seen[i];
        }
      }
      for (std::size_t i = 0; i < sums.size(); ++i) {
        const double expected = kWeights[i] / 16 * static_cast<double>(draws);
        const double part = expected - std::floor(expected);
        EXPECT_NEAR(sums[i] / kEpochs, expected, 4 * std::sqrt(part * (1 - part) / kEpochs) + 1e-9) << draws;
      }
    }
  }
}

TEST(Weighted, StridesFetchesAndIdentity) {
  const BlocksShape shape{2, 6, 3};
  expect_strides_agree(make_weighted(50, 5));
  expect_strides_agree(make_weighted(50, 5, nullptr, Draws::Systematic));
  expect_strides_agree(make_weighted(50, 5, &shape));
  expect_fetches_end(make_weighted(50, 5, &shape), 300);
  const Weighted order = make_weighted(50, 5);
  EXPECT_EQ(order.epoch_size(), 50U);
  EXPECT_EQ(order.end(0), Order::kNever);
  const std::string text = order.identity(3);
  EXPECT_NE(text.find(R"("name":"weighted","seed":5,"size":8,"table":")"), std::string::npos) << text;
  EXPECT_TRUE(text.starts_with(R"({"algorithm":2,"draws":{)")) << text;
  EXPECT_TRUE(make_weighted(50, 5, nullptr, Draws::Systematic).identity(3).starts_with(R"({"algorithm":1,"draws":{)"));
  EXPECT_NE(text, make_weighted(51, 5).identity(3));
  EXPECT_NE(text, make_weighted(50, 6).identity(3));
  EXPECT_NE(text, make_weighted(50, 5, &shape).identity(3));
  EXPECT_NE(indices(order, 0, 1, 50), indices(make_weighted(50, 6), 0, 1, 50));
}

TEST(Weighted, WithoutReplacementNoneComesTwice) {
  const std::vector<double> weights{1, 1, 0.5, 0.25, 0.25, 1};  // 4
  const Weighted order(WeightTable(weights), std::make_shared<Uniform>(4, 1), 1, false);
  for (std::uint64_t epoch = 0; epoch < 50; ++epoch) {
    std::vector<std::uint64_t> seen = indices(order, 4 * epoch, 1, 4);
    std::sort(seen.begin(), seen.end());
    EXPECT_EQ(std::unique(seen.begin(), seen.end()), seen.end());
  }
  EXPECT_THROW(Weighted(WeightTable(weights), std::make_shared<Uniform>(5, 1), 1, false), Error);
}

TEST(Weighted, DrawsOfAnotherAlgorithmSayHowToEndThatRun) {
  const auto difference = [](Draws saved, Draws now) {
    const std::string before = make_weighted(50, 5, nullptr, saved).identity(Order::kNever);
    const OrderDifference difference = make_weighted(50, 5, nullptr, now).difference_to(before, 0);
    return difference.texts.empty() ? "" : difference.texts.front().text;
  };
  EXPECT_EQ(
      difference(Draws::Systematic, Draws::Rounded),
      "order's algorithm: saved 1, now 2: its draws are systematic: give draws=\"systematic\" to the order to end "
      "that run");
  EXPECT_EQ(difference(Draws::Rounded, Draws::Systematic),
            "order's algorithm: saved 2, now 1: its draws are rounded: leave draws= of the order out to end that run");
  EXPECT_EQ(difference(Draws::Rounded, Draws::Rounded), "");
}

}  // namespace
}  // namespace penstock::shuffle
