// Pauses between attempts: bounded, jittered, and told in words when they are over.
#include "core/io/back_off.h"

#include <gtest/gtest.h>

#include <set>

namespace penstock {
namespace {

using std::chrono::milliseconds;

TEST(BackOff, PausesAreDrawnFromAllThatIsBelowABoundThatDoublesUpToFiveSeconds) {
  for (const auto& [attempts, bound] :
       {std::pair{1U, 100}, {2U, 200}, {5U, 1'600}, {6U, 3'200}, {7U, 5'000}, {40U, 5'000}, {0xffff'ffffU, 5'000}}) {
    std::set<milliseconds> drawn;
    for (int i = 0; i < 4'000; ++i) drawn.insert(back_off(attempts));
    EXPECT_LT(*drawn.rbegin(), milliseconds(bound)) << attempts;
    EXPECT_GT(*drawn.rbegin(), milliseconds(bound * 9 / 10)) << attempts;
    EXPECT_LT(*drawn.begin(), milliseconds(bound / 10)) << attempts;
    EXPECT_GT(drawn.size(), bound < 5'000 ? 50U : 2'000U) << "two are seldom the same";
  }
}

TEST(BackOff, ARequestThatIsGivenUpIsToldWithItsTimeAndAttempts) {
  EXPECT_EQ(given_up(std::chrono::seconds(60), 9), "no answer that will do in 60 s and 9 attempts; the last");
  EXPECT_EQ(given_up(milliseconds(500), 1), "no answer that will do in 0.5 s and 1 attempt; the last");
}

}  // namespace
}  // namespace penstock
