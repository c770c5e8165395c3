// What a loader counts of itself.
#include "core/engine/metrics.h"

#include "tests/native/core/engine/loader_fixture.h"

namespace penstock::testing {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

TEST(Metrics, ABucketHasTimesUpToItsBound) {
  EXPECT_EQ(time_bucket(nanoseconds(-5)), 0U);
  EXPECT_EQ(time_bucket(nanoseconds(0)), 0U);
  for (std::size_t k = 0; k < kTimeBounds; ++k) {
    const microseconds bound(std::uint64_t{1} << (2 * k));
    EXPECT_EQ(time_bucket(bound), k);
    EXPECT_EQ(time_bucket(bound + nanoseconds(1)), k + 1);
  }
  EXPECT_EQ(time_bucket(std::chrono::hours(1)), kTimeBounds);
}

TEST(Metrics, CountWhatWasReadAndGiven) {
  for (const Case& setup :
       cases(each(&Case::fetch, {1, 4}), each(&Case::threads, {1, 4}), each(&Case::late, {false, true}))) {
    Loader loader(options_of(setup));
    EXPECT_EQ(loader.metrics().batches, 0U);
    std::uint64_t batches = 0;
    std::uint64_t observations = 0;
    while (const auto batch = next(loader)) {
      ++batches;
      observations += batch->plan.valid;
      EXPECT_GT(loader.metrics().memory_bytes, 0U);
    }
    const Metrics found = loader.metrics();
    EXPECT_EQ(found.batches, batches);
    EXPECT_EQ(found.observations, observations);
    EXPECT_EQ(observations, 2 * setup.count);
    // Reads that the consumer's thread had at hand are counted here, but not by the store.
    EXPECT_GE(found.bytes_read, setup.behaviour->bytes);
    EXPECT_GE(found.bytes_read, observations * setup.window * 4) << "and the entries";
    EXPECT_GT(found.reads, 0U);
    EXPECT_EQ(found.merged_reads > 0, setup.fetch > 1);
    EXPECT_LE(found.queue_depth, setup.prefetch);
    EXPECT_EQ(found.retries, 0U);
    if (setup.late) {
      EXPECT_GT(found.read_time.count(), 0);
      EXPECT_GT(found.stalls, 0U);
      EXPECT_LE(found.stalls, batches);
      EXPECT_GT(found.stall_time.count(), 0);
    }
    loader.seek(0);
    rest(loader);
    loader.close();
    EXPECT_EQ(loader.metrics().batches, 2 * batches) << "what was counted stays";
    EXPECT_GE(loader.metrics().reads, found.reads);
  }
}

TEST(Metrics, ReadsAreCountedAsTheyEnded) {
  ReadCounters counters;
  const std::atomic<bool> cancelled = true;
  Read read;
  read.size = 10;
  read.retries = 2;
  const auto end = [&] { counters.ended(read, microseconds(3)); };
  end();
  read.joined = true;
  end();
  read.outcome = Outcome::NotAtHand;
  end();
  read.outcome = Outcome::Done;
  read.cancelled = &cancelled;
  end();
  Metrics sums;
  counters.add_to(sums);
  EXPECT_EQ(sums.bytes_read, 20U);
  EXPECT_EQ(sums.reads, 1U);
  EXPECT_EQ(sums.merged_reads, 1U);
  EXPECT_EQ(sums.retries, 4U);
  EXPECT_EQ(sums.read_times[1], 1U);
  EXPECT_EQ(sums.read_time, microseconds(3));
}

}  // namespace
}  // namespace penstock::testing
