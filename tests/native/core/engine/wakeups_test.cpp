// The decisions of waking, without threads or a clock.
#include "core/engine/wakeups.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <limits>

namespace penstock::testing {
namespace {

using namespace std::chrono_literals;
using Time = Wakeups::Time;
using Duration = Wakeups::Duration;

constexpr Time kBegin = Time(std::chrono::hours(1));

/// A consumer that takes a batch every `pace`, and threads that read a batch of 64 rows in `read`; at `now` it has just
/// left with a batch.
struct Loop {
  Wakeups wakeups;
  Time now = kBegin;

  Loop(unsigned threads, unsigned cores) : wakeups(threads, cores) {}
  Loop& runs(Duration pace, Duration read, int batches = 100) {
    for (int i = 0; i < batches; ++i) {
      now += pace;
      wakeups.batch_taken(now);
      wakeups.rows_read(64, 64, read);
    }
    return *this;
  }
  /// It waits, and reads rows itself or not.
  Loop& waits(bool reads) {
    wakeups.consumer_waits();
    wakeups.consumer_reads(reads);
    return *this;
  }
  Loop& leaves() {
    wakeups.consumer_leaves(now);
    return *this;
  }
};

TEST(Wakeups, UnknownTimesKeepReadAheadFullByAllThreads) {
  const Wakeups wakeups(8, 16);
  EXPECT_EQ(wakeups.threads_wanted(kBegin), 8U);
  EXPECT_EQ(wakeups.low_water(4), 3U);
  Wakeups only_pace(8, 16);
  only_pace.batch_taken(kBegin);
  only_pace.batch_taken(kBegin + 1ms);
  EXPECT_EQ(only_pace.pace(), 1ms);
  EXPECT_EQ(only_pace.threads_wanted(kBegin + 1ms), 8U);
  EXPECT_EQ(only_pace.low_water(4), 3U);
  Wakeups only_read(8, 16);
  only_read.rows_read(64, 64, 1ms);
  EXPECT_EQ(only_read.threads_wanted(kBegin), 8U);
  EXPECT_EQ(only_read.low_water(4), 3U);
}

TEST(Wakeups, FastReadsBesideSlowStepsWakeOneThreadForTheLastBatch) {
  Loop loop(8, 16);
  loop.runs(12ms, 100us);
  EXPECT_EQ(loop.wakeups.threads_wanted(loop.now), 1U);
  EXPECT_EQ(loop.wakeups.low_water(4), 1U);
  EXPECT_EQ(loop.wakeups.low_water(64), 1U);
}

TEST(Wakeups, SlowReadsWakeAsManyThreadsAsReadThreeBatchesInAStep) {
  Loop loop(8, 16);
  loop.runs(12ms, 12ms);
  EXPECT_EQ(loop.wakeups.threads_wanted(loop.now), 3U);
  EXPECT_EQ(loop.wakeups.low_water(16), 3U);
  EXPECT_EQ(loop.wakeups.low_water(4), 3U);
  EXPECT_EQ(loop.wakeups.low_water(2), 1U);
  loop.runs(12ms, 20ms);
  EXPECT_EQ(loop.wakeups.threads_wanted(loop.now), 5U);
  loop.runs(12ms, 1s, 200);
  EXPECT_EQ(loop.wakeups.threads_wanted(loop.now), 8U);
  EXPECT_EQ(loop.wakeups.low_water(4), 3U) << "as soon as one batch is missing";
}

TEST(Wakeups, OneSlowReadCountsForAnEighth) {
  Loop loop(8, 16);
  loop.runs(10ms, 1ms);
  loop.runs(10ms, 81ms, 1);
  EXPECT_EQ(loop.wakeups.read_time(), 11ms);
  EXPECT_EQ(loop.wakeups.threads_wanted(loop.now), 4U);
  loop.runs(10ms, 1ms, 60);
  EXPECT_EQ(loop.wakeups.threads_wanted(loop.now), 1U);
}

TEST(Wakeups, ReadTimeIsOfAWholeBatchHoweverFewRowsWereRead) {
  Wakeups wakeups(8, 16);
  wakeups.rows_read(4, 64, 1ms);
  EXPECT_EQ(wakeups.read_time(), 16ms);
  wakeups.rows_read(0, 64, 5s);
  EXPECT_EQ(wakeups.read_time(), 16ms) << "of no rows nothing is learnt";
}

TEST(Wakeups, APauseForgetsThePace) {
  Loop loop(8, 16);
  loop.runs(1ms, 10us);
  loop.now += 1s;
  loop.wakeups.batch_taken(loop.now);
  EXPECT_GT(loop.wakeups.pace(), 1ms) << "a slow step is no pause";
  loop.now += 1s + 1ns;
  loop.wakeups.batch_taken(loop.now);
  EXPECT_EQ(loop.wakeups.pace(), Duration(0));
  EXPECT_EQ(loop.wakeups.threads_wanted(loop.now), 8U);
  EXPECT_EQ(loop.wakeups.low_water(4), 3U);
  loop.now += 2ms;
  loop.wakeups.batch_taken(loop.now);
  EXPECT_EQ(loop.wakeups.pace(), 2ms) << "what was before the pause does not count";
}

TEST(Wakeups, WhileTheConsumerWaitsAllThreadsAreWanted) {
  Loop loop(8, 16);
  loop.runs(12ms, 100us).waits(false);
  EXPECT_EQ(loop.wakeups.threads_wanted(loop.now), 8U);
  EXPECT_EQ(loop.wakeups.low_water(4), 3U);
  loop.leaves();
  EXPECT_EQ(loop.wakeups.threads_wanted(loop.now), 1U);
  EXPECT_EQ(loop.wakeups.low_water(4), 1U);
}

TEST(Wakeups, WithoutCoresToSpareAllWakeIfTheConsumerSleeps) {
  Loop loop(8, 2);
  loop.runs(1ms, 10ms).waits(false);
  EXPECT_EQ(loop.wakeups.most_awake(loop.now), 8U);
  EXPECT_EQ(loop.wakeups.threads_wanted(loop.now), 8U);
}

TEST(Wakeups, AConsumerThatReadsKeepsItsCoreUntilItHasLeftForAWhile) {
  Loop loop(8, 4);
  loop.runs(1ms, 10ms).waits(true);
  EXPECT_EQ(loop.wakeups.beside_consumer(), 3U);
  EXPECT_EQ(loop.wakeups.most_awake(loop.now), 3U);
  EXPECT_EQ(loop.wakeups.threads_wanted(loop.now), 3U);
  loop.leaves();
  EXPECT_EQ(loop.wakeups.most_awake(loop.now + 200us), 3U) << "a loop without work comes back at once";
  EXPECT_EQ(loop.wakeups.most_awake(loop.now + 201us), 8U);
  EXPECT_EQ(loop.wakeups.threads_wanted(loop.now + 201us), 8U);
  loop.waits(false).leaves();
  EXPECT_EQ(loop.wakeups.most_awake(loop.now), 8U) << "it slept when it last waited";
}

TEST(Wakeups, WithMoreCoresThanThreadsTheConsumerIsInNobodysWay) {
  Loop loop(3, 4);
  loop.waits(true);
  EXPECT_EQ(loop.wakeups.beside_consumer(), 3U);
  EXPECT_EQ(loop.wakeups.most_awake(loop.now), 3U);
}

TEST(Wakeups, OnOneCoreOneThreadStaysAwake) {
  for (const unsigned cores : {0U, 1U}) {
    Loop loop(4, cores);
    loop.runs(1ms, 10ms).waits(true);
    EXPECT_EQ(loop.wakeups.beside_consumer(), 1U);
    EXPECT_EQ(loop.wakeups.most_awake(loop.now), 1U);
    EXPECT_EQ(loop.wakeups.threads_wanted(loop.now), 1U);
  }
}

TEST(Wakeups, AClaimIsAShareOfAtMostSixteenRows) {
  const Wakeups wakeups(4, 8);
  EXPECT_EQ(wakeups.rows_a_claim(8, 4), 2U);
  EXPECT_EQ(wakeups.rows_a_claim(9, 4), 3U);
  EXPECT_EQ(wakeups.rows_a_claim(1'000, 4), 16U);
}

TEST(Wakeups, AClaimIsSmallWhereARowTakesLong) {
  const auto claim_after = [](Duration row) {
    Wakeups wakeups(4, 8);
    wakeups.rows_read(64, 64, 64 * row);
    return wakeups.rows_a_claim(1'000, 4);
  };
  EXPECT_EQ(claim_after(1us), 16U);
  EXPECT_EQ(claim_after(10us), 10U);
  EXPECT_EQ(claim_after(50us), 2U);
  EXPECT_EQ(claim_after(1ms), 1U);
  EXPECT_EQ(claim_after(10s), 1U);
}

TEST(Wakeups, NothingPlannedNeedsNobody) {
  Loop loop(8, 16);
  EXPECT_EQ(loop.wakeups.low_water(0), 0U);
  loop.runs(1ms, 10ms);
  EXPECT_EQ(loop.wakeups.low_water(0), 0U);
  EXPECT_EQ(loop.wakeups.low_water(1), 0U);
  EXPECT_LE(loop.wakeups.rows_a_claim(0, 8), 1U);
}

// With -fsanitize=undefined an overflow ends the test.
TEST(Wakeups, ExtremesDoNotOverflow) {
  constexpr auto kForever = Duration::max();
  Wakeups wakeups(8, 16);
  wakeups.batch_taken(Time::max() - 1ns);
  wakeups.batch_taken(Time::max());
  EXPECT_EQ(wakeups.pace(), 1ns);
  for (int i = 0; i < 100; ++i) wakeups.rows_read(1, std::numeric_limits<std::uint64_t>::max(), kForever);
  EXPECT_GT(wakeups.read_time(), 0ns);
  EXPECT_EQ(wakeups.threads_wanted(Time::max()), 8U);
  EXPECT_EQ(wakeups.low_water(1'000), 999U);
  EXPECT_EQ(wakeups.rows_a_claim(std::numeric_limits<std::uint64_t>::max(), 8), 1U);

  Loop loop(8, 16);
  loop.runs(0ns, 0ns);
  EXPECT_GE(loop.wakeups.pace(), 1ns);
  EXPECT_GE(loop.wakeups.read_time(), 1ns);
  EXPECT_GE(loop.wakeups.threads_wanted(loop.now), 1U);
  EXPECT_EQ(loop.wakeups.rows_a_claim(1'000, 4), 16U);
}

}  // namespace
}  // namespace penstock::testing
