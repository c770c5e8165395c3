#include "core/rows/allowance.h"

#include <gtest/gtest.h>

#include <thread>

namespace penstock {
namespace {

TEST(AllowanceTest, TheFirstGrantDecidesForTheLargestStepWithinTheAmount) {
  const std::pair<std::uint64_t, std::uint64_t> cases[] = {{0, 0},   {9, 0},   {10, 10},        {29, 10},
                                                           {30, 30}, {31, 30}, {UINT64_MAX, 30}};
  for (const auto& [bytes, step] : cases) {
    Allowance allowance({10, 30});
    EXPECT_EQ(allowance.granted(), 0U);
    EXPECT_EQ(allowance.grant(bytes), step) << bytes;
    EXPECT_EQ(allowance.grant(100), step) << bytes;
    EXPECT_EQ(allowance.granted(), step) << bytes;
  }
  EXPECT_EQ(Allowance({}).grant(UINT64_MAX), 0U);
}

TEST(AllowanceTest, ThreadsThatGrantAtOnceAgree) {
  for (int round = 0; round < 50; ++round) {
    Allowance allowance({10, 20, 30, 40});
    std::vector<std::uint64_t> granted(4);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] { granted[i] = allowance.grant(10 * (i + 1)); });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::uint64_t each : granted) EXPECT_EQ(each, allowance.granted());
  }
}

}  // namespace
}  // namespace penstock
