// Pauses between attempts: bounded, jittered, and told in words when they are over.
#include "core/io/back_off.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <set>

namespace penstock {
namespace {

using std::chrono::milliseconds;

struct Drawn {
  milliseconds least{1'000'000};
  milliseconds most{0};
  std::set<std::int64_t> values;
};

Drawn draw(std::uint32_t attempts) {
  Drawn drawn;
  for (int i = 0; i < 4'000; ++i) {
    const milliseconds pause = back_off(attempts);
    drawn.least = std::min(drawn.least, pause);
    drawn.most = std::max(drawn.most, pause);
    drawn.values.insert(pause.count());
  }
  return drawn;
}

TEST(BackOff, PausesAreDrawnFromAllThatIsBelowADoublingBound) {
  for (const auto& [attempts, bound] : {std::pair{1U, 100}, {2U, 200}, {5U, 1'600}, {6U, 3'200}}) {
    const Drawn drawn = draw(attempts);
    EXPECT_LT(drawn.most, milliseconds(bound)) << attempts;
    EXPECT_GT(drawn.most, milliseconds(bound * 9 / 10)) << attempts;
    EXPECT_LT(drawn.least, milliseconds(bound / 10)) << attempts;
  }
}

TEST(BackOff, TheBoundIsFiveSecondsAfterAnyNumberOfAttempts) {
  for (const std::uint32_t attempts : {7U, 11U, 40U, 0xffff'ffffU}) {
    const Drawn drawn = draw(attempts);
    EXPECT_LT(drawn.most, milliseconds(5'000)) << attempts;
    EXPECT_GT(drawn.most, milliseconds(4'500)) << attempts;
  }
}

TEST(BackOff, TwoPausesAreSeldomTheSame) {
  EXPECT_GT(draw(7).values.size(), 2'000U);
}

TEST(BackOff, ARequestThatIsGivenUpIsToldWithItsTimeAndAttempts) {
  EXPECT_EQ(given_up(std::chrono::seconds(60), 9), "no answer that will do in 60 s and 9 attempts; the last");
  EXPECT_EQ(given_up(milliseconds(500), 1), "no answer that will do in 0.5 s and 1 attempts; the last");
}

}  // namespace
}  // namespace penstock
