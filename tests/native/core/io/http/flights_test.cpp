#include "core/io/http/flights.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <thread>
#include <vector>

namespace penstock::testing {
namespace {

TEST(FlightLimit, BoundsWhatIsUnderWay) {
  FlightLimit limit(2);
  EXPECT_TRUE(limit.try_begin());
  EXPECT_TRUE(limit.try_begin());
  EXPECT_FALSE(limit.try_begin());
  limit.end();
  EXPECT_TRUE(limit.try_begin());
}

TEST(FlightLimit, ABusyServerIsAskedHalfAsMuchOnceABurst) {
  FlightLimit limit(64);
  for (int i = 0; i < 10; ++i) limit.was_busy(0);
  EXPECT_EQ(limit.limit(), 32U);
  const std::size_t then = limit.halvings();
  for (int i = 0; i < 32; ++i) limit.was_good();
  EXPECT_EQ(limit.limit(), 33U);
  limit.was_busy(then);
  EXPECT_EQ(limit.limit(), 16U) << "though it rose since the request began";
  for (int i = 0; i < 10; ++i) limit.was_busy(limit.halvings());
  EXPECT_EQ(limit.limit(), 1U) << "and never none";
}

TEST(FlightLimit, AFullRoundOfGoodAnswersAllowsOneMore) {
  FlightLimit limit(8);
  limit.was_busy(0);
  for (int i = 0; i < 3; ++i) limit.was_good();
  EXPECT_EQ(limit.limit(), 4U);
  limit.was_good();
  EXPECT_EQ(limit.limit(), 5U);
  for (int i = 0; i < 100; ++i) limit.was_good();
  EXPECT_EQ(limit.limit(), 8U);
}

TEST(FlightLimit, AllStoresOfAProcessThatAskOneServerShareIt) {
  FlightLimit& one = flights_to("http://one", 2);
  EXPECT_EQ(&one, &flights_to("http://one", 2));
  EXPECT_NE(&one, &flights_to("http://two", 2));
  EXPECT_NE(&one, &flights_to("http://one", 3)) << "who asked for another number gets it";
  EXPECT_TRUE(one.try_begin());
  const pid_t child = fork();
  if (child == 0) {
    const bool is_new = flights_to("http://one", 2).under_way() == 0 && flights_to("http://two", 2).under_way() == 0;
    _exit(is_new ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "what the parent has under way is not the child's";
  EXPECT_EQ(one.under_way(), 1U);
  one.end();
}

TEST(FlightLimit, ManyThreadsFindOne) {
  constexpr std::size_t kThreads = 8;
  std::array<FlightLimit*, kThreads> found{};
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&found, i] { found[i] = &flights_to("http://many", 4); });
  }
  for (std::thread& each : threads) each.join();
  for (const FlightLimit* each : found) EXPECT_EQ(each, found[0]);
}

}  // namespace
}  // namespace penstock::testing
