// The decisions of waking, without threads or a clock.
#include "core/engine/wakeups.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

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

void expect_all_wanted(const Wakeups& wakeups, Time now) {
  EXPECT_EQ(wakeups.threads_wanted(now), 8U);
  EXPECT_EQ(wakeups.low_water(4), 3U) << "as soon as one batch is missing";
}

TEST(Wakeups, UnknownTimesKeepReadAheadFullByAllThreads) {
  expect_all_wanted(Wakeups(8, 16), kBegin);
  Wakeups only_pace(8, 16);
  only_pace.batch_taken(kBegin);
  only_pace.batch_taken(kBegin + 1ms);
  EXPECT_EQ(only_pace.pace(), 1ms);
  expect_all_wanted(only_pace, kBegin + 1ms);
  Wakeups only_read(8, 16);
  only_read.rows_read(64, 64, 1ms);
  expect_all_wanted(only_read, kBegin);
}

TEST(Wakeups, AsManyThreadsAreWantedAsReadThreeBatchesInAStep) {
  using Marks = std::vector<std::size_t>;
  const std::tuple<Duration, unsigned, Marks> table[] = {// time of a read, threads, and marks of these many planned
                                                         {100us, 1, {0, 0, 1, 1, 1}},
                                                         {12ms, 3, {0, 0, 1, 3, 3}},
                                                         {20ms, 5, {0, 0, 1, 3, 5}},
                                                         {1s, 8, {0, 0, 1, 3, 63}}};
  for (const auto& [read, threads, low_water] : table) {
    Loop loop(8, 16);
    loop.runs(12ms, read);
    EXPECT_EQ(loop.wakeups.threads_wanted(loop.now), threads);
    Marks found;
    for (const std::size_t planned : {0, 1, 2, 4, 64}) found.push_back(loop.wakeups.low_water(planned));
    EXPECT_EQ(found, low_water) << threads;
  }
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
  const auto take_after = [&](Duration time) {
    loop.now += time;
    loop.wakeups.batch_taken(loop.now);
  };
  take_after(1s);
  EXPECT_GT(loop.wakeups.pace(), 1ms) << "a slow step is no pause";
  take_after(1s + 1ns);
  EXPECT_EQ(loop.wakeups.pace(), Duration(0));
  expect_all_wanted(loop.wakeups, loop.now);
  take_after(2ms);
  EXPECT_EQ(loop.wakeups.pace(), 2ms) << "what was before the pause does not count";
}

TEST(Wakeups, WhileTheConsumerWaitsAllThreadsAreWanted) {
  Loop loop(8, 16);
  loop.runs(12ms, 100us).waits(false);
  expect_all_wanted(loop.wakeups, loop.now);
  loop.leaves();
  EXPECT_EQ(loop.wakeups.threads_wanted(loop.now), 1U);
  EXPECT_EQ(loop.wakeups.low_water(4), 1U);
}

TEST(Wakeups, AConsumerThatReadsKeepsItsCoreUntilItHasLeftForAWhile) {
  Loop loop(8, 4);
  loop.runs(1ms, 10ms).waits(true);
  EXPECT_EQ(loop.wakeups.threads_wanted(loop.now), 3U);
  loop.leaves();
  EXPECT_EQ(loop.wakeups.most_awake(loop.now + 200us), 3U) << "a loop without work comes back at once";
  EXPECT_EQ(loop.wakeups.most_awake(loop.now + 201us), 8U);
  EXPECT_EQ(loop.wakeups.threads_wanted(loop.now + 201us), 8U);
  loop.waits(false).leaves();
  EXPECT_EQ(loop.wakeups.most_awake(loop.now), 8U) << "it slept when it last waited";
}

TEST(Wakeups, ThreadsAwakeBesideAConsumerThatWaitsHaveTheOtherCores) {
  for (const auto& [threads, cores, reads, awake] : {std::tuple{8U, 4U, true, 3U},
                                                     {8U, 2U, false, 8U},
                                                     {3U, 4U, true, 3U},
                                                     {4U, 1U, true, 1U},
                                                     {4U, 0U, true, 1U}}) {
    Loop loop(threads, cores);
    loop.runs(1ms, 10ms).waits(reads);
    if (reads) {
      EXPECT_EQ(loop.wakeups.beside_consumer(), awake) << cores;
    }
    EXPECT_EQ(loop.wakeups.most_awake(loop.now), awake) << cores;
    EXPECT_EQ(loop.wakeups.threads_wanted(loop.now), awake) << cores;
  }
}

TEST(Wakeups, AClaimIsAShareOfAtMostSixteenRowsAndSmallWhereARowTakesLong) {
  const Wakeups unknown(4, 8);
  EXPECT_EQ(unknown.rows_a_claim(8, 4), 2U);
  EXPECT_EQ(unknown.rows_a_claim(9, 4), 3U);
  EXPECT_EQ(unknown.rows_a_claim(1'000, 4), 16U);
  for (const auto& [row, rows] : {std::pair<Duration, unsigned>{1us, 16}, {10us, 10}, {50us, 2}, {1ms, 1}, {10s, 1}}) {
    Wakeups wakeups(4, 8);
    wakeups.rows_read(64, 64, 64 * row);
    EXPECT_EQ(wakeups.rows_a_claim(1'000, 4), rows);
    EXPECT_LE(wakeups.rows_a_claim(0, 8), 1U);
  }
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
