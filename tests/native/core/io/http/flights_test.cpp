#include "core/io/http/flights.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace penstock::testing
