// Wakeups: how many threads are awake, and when a sleeping one is woken, from two measured times.
//
// The pace is the time between two batches that the consumer takes; the read time is what one thread needs for a batch.
// - So many threads are wanted that they read three batches in the time in which the consumer takes one.
// - A thread is woken when no more batches are ready than the consumer takes while three are read. Where reads are slow
//   that is all that are read ahead, so read-ahead is kept full; where they are fast it is one, and a thread that wakes
//   reads the rest of them, since to wake one costs the consumer more than all else that a ready batch does.
// - While the consumer waits, all threads are wanted; where it reads rows itself, those that have a core beside it.
//
// Decisions alone: no thread, no clock. With the engine's mutex held.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace penstock {

class Wakeups {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::nanoseconds;

  /// Of `threads` threads, where this loader may use `cores`.
  Wakeups(unsigned threads, unsigned cores) : threads_(threads), cores_(cores) {}

  // --- what happened

  void batch_taken(Time now);
  /// A thread was awake for `busy` and read `rows` rows, of batches that have `batch_rows`.
  void rows_read(std::uint64_t rows, std::uint64_t batch_rows, Duration busy);
  void consumer_waits() { waits_ = true; }
  /// It reads rows itself while it waits, or no longer.
  void consumer_reads(bool reads) { reads_ = reads; }
  void consumer_leaves(Time now);

  // --- what follows

  /// How many threads should be awake.
  [[nodiscard]] unsigned threads_wanted(Time now) const;
  /// How many may be awake: a thread beyond these sleeps even if there is work.
  [[nodiscard]] unsigned most_awake(Time now) const;
  /// Of `planned` batches: a thread is woken when no more than these are ready.
  [[nodiscard]] std::size_t low_water(std::size_t planned) const;
  /// How many rows a thread takes at once, of a batch of `rows`.
  [[nodiscard]] std::uint64_t rows_a_claim(std::uint64_t rows, unsigned shares) const;
  [[nodiscard]] unsigned beside_consumer() const noexcept;

  [[nodiscard]] Duration pace() const noexcept { return pace_; }
  [[nodiscard]] Duration read_time() const noexcept { return read_; }

 private:
  [[nodiscard]] bool knows_both() const noexcept { return pace_.count() > 0 && read_.count() > 0; }

  const unsigned threads_;
  const unsigned cores_;
  Duration pace_{0};  // mean of the last few; 0: unknown
  Duration read_{0};  // of a batch
  Duration row_{0};   // of a row
  Time took_at_{};
  Time left_at_{};
  bool waits_ = false;
  bool reads_ = false;
  bool read_lately_ = false;  // it read rows itself when it last waited
};

}  // namespace penstock
