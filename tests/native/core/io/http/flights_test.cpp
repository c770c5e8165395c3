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
  for (int i = 0; i < 10; ++i) limit.was_busy(64);
  EXPECT_EQ(limit.limit(), 32U);
  limit.was_busy(32);
  EXPECT_EQ(limit.limit(), 16U);
  for (std::size_t i = 16; i > 0; i /= 2) limit.was_busy(i);
  EXPECT_EQ(limit.limit(), 1U) << "and never none";
}

TEST(FlightLimit, AFullRoundOfGoodAnswersAllowsOneMore) {
  FlightLimit limit(8);
  limit.was_busy(8);
  for (int i = 0; i < 3; ++i) limit.was_good();
  EXPECT_EQ(limit.limit(), 4U);
  limit.was_good();
  EXPECT_EQ(limit.limit(), 5U);
  for (int i = 0; i < 100; ++i) limit.was_good();
  EXPECT_EQ(limit.limit(), 8U);
}

}  // namespace
}  // namespace penstock::testing
