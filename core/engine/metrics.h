// Metrics: what a loader has done, counted without a lock by the threads that do it.
//
// Each thread writes counters of its own; any thread reads them, at any time. Sums are of what was counted so far, and
// never go back.
#pragma once

#include "core/base/align.h"
#include "core/io/read.h"

#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>

namespace penstock {

/// A count that one thread adds to and others read.
class Count {
 public:
  void add(std::uint64_t more) noexcept { value_.store(get() + more, std::memory_order_relaxed); }
  void set(std::uint64_t value) noexcept { value_.store(value, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t get() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

/// Bucket k of a histogram of times: at most 4^k µs; the last one has what took longer.
constexpr std::size_t kTimeBounds = 12;  // 1 µs to 4.2 s
constexpr std::size_t time_bucket(std::chrono::nanoseconds time) noexcept {
  const auto below = static_cast<std::uint64_t>(time.count() > 0 ? time.count() - 1 : 0) / 1000;
  const auto bucket = static_cast<std::size_t>(std::bit_width(below) + 1) / 2;
  return bucket < kTimeBounds ? bucket : kTimeBounds;
}

/// All that was counted, at one time.
struct Metrics {
  std::uint64_t batches = 0;                                // given to the caller …
  std::uint64_t observations = 0;                           // … and their rows but for padding
  std::uint64_t bytes_read = 0;                             // asked of the stores, what lies between merged reads too
  std::uint64_t reads = 0;                                  // requests that ended
  std::uint64_t merged_reads = 0;                           // reads that were part of the request before theirs
  std::uint64_t retries = 0;                                // times that a store went on with a read or tried it again
  std::array<std::uint64_t, kTimeBounds + 1> read_times{};  // of requests, from submission on
  std::chrono::nanoseconds read_time{};                     // together
  std::uint64_t queue_depth = 0;                            // batches that were ready when the caller last came …
  std::uint64_t stalls = 0;                                 // … and times that it had to wait, for so long together
  std::chrono::nanoseconds stall_time{};
  std::uint64_t memory_bytes = 0;  // of batches and fetches, now
};

/// Reads of one thread.
class alignas(kCacheLine) ReadCounters {
 public:
  /// It ended, `time` after it was submitted.
  void ended(const Read& read, std::chrono::nanoseconds time) noexcept {
    if (read.outcome == Outcome::NotAtHand || (read.cancelled != nullptr && *read.cancelled)) return;
    bytes_.add(read.size);
    retries_.add(read.retries);
    if (read.joined) return merged_.add(1);
    times_[time_bucket(time)].add(1);
    time_.add(static_cast<std::uint64_t>(time.count()));
  }
  void add_to(Metrics& sums) const noexcept {
    sums.bytes_read += bytes_.get();
    sums.retries += retries_.get();
    sums.merged_reads += merged_.get();
    sums.read_time += std::chrono::nanoseconds(time_.get());
    for (std::size_t i = 0; i < times_.size(); ++i) {
      sums.read_times[i] += times_[i].get();
      sums.reads += times_[i].get();
    }
  }

 private:
  Count bytes_;
  Count retries_;
  Count merged_;
  Count time_;
  std::array<Count, kTimeBounds + 1> times_;
};

/// Of one loader; it outlives the loader's threads.
struct Counters {
  explicit Counters(unsigned threads) : reads(threads + 1) {}

  std::deque<ReadCounters> reads;  // of each thread, then of the consumer
  // The consumer's:
  Count batches;
  Count observations;
  Count queue_depth;
  Count stalls;
  Count stall_ns;
};

}  // namespace penstock
