#include "core/io/http/flights.h"

#include "tests/native/core/io/in_child.h"

#include <array>
#include <thread>
#include <vector>

namespace penstock::testing {
namespace {

TEST(FlightLimit, ABusyServerIsAskedHalfAsMuchOnceABurstAndOneMoreAfterAFullRoundOfGoodAnswers) {
  FlightLimit limit(64);
  const auto good = [&](int answers) {
    for (int i = 0; i < answers; ++i) limit.was_good();
    return limit.limit();
  };
  for (int i = 0; i < 10; ++i) limit.was_busy(0);
  EXPECT_EQ(limit.limit(), 32U);
  const std::size_t then = limit.halvings();
  EXPECT_EQ(good(31), 32U);
  EXPECT_EQ(good(1), 33U);
  limit.was_busy(then);
  EXPECT_EQ(limit.limit(), 16U) << "though it rose since the request began";
  for (int i = 0; i < 10; ++i) limit.was_busy(limit.halvings());
  EXPECT_EQ(limit.limit(), 1U) << "and never none";
  EXPECT_EQ(good(5'000), 64U);
}

TEST(FlightLimit, AllStoresOfAProcessThatAskOneServerShareIt) {
  FlightLimit& one = flights_to("http://one", 2);
  EXPECT_NE(&one, &flights_to("http://two", 2));
  EXPECT_NE(&one, &flights_to("http://one", 3)) << "who asked for another number gets it";
  EXPECT_TRUE(one.try_begin());
  EXPECT_TRUE(one.try_begin());
  EXPECT_FALSE(one.try_begin());
  one.end();
  EXPECT_TRUE(in_child([] {
    return flights_to("http://one", 2).under_way() == 0 && flights_to("http://two", 2).under_way() == 0;
  })) << "what the parent has under way is not the child's";
  EXPECT_EQ(one.under_way(), 1U);
  one.end();
  std::array<FlightLimit*, 8> found{};
  std::vector<std::thread> threads;
  for (FlightLimit*& each : found) threads.emplace_back([&each] { each = &flights_to("http://many", 4); });
  for (std::thread& each : threads) each.join();
  for (const FlightLimit* each : found) EXPECT_EQ(each, found[0]);
}

}  // namespace
}  // namespace penstock::testing
