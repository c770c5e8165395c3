// ReadQueue: reads that a channel has taken and not begun, in order. Of one channel and so of one thread.
#pragma once

#include "core/io/read.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace penstock {

class ReadQueue {
 public:
  /// Throws std::bad_alloc and then has taken none.
  void push(std::span<Read* const> reads) { reads_.insert(reads_.end(), reads.begin(), reads.end()); }
  /// push() of `count` more cannot throw.
  void reserve(std::size_t count) { reads_.reserve(reads_.size() + count); }
  [[nodiscard]] std::size_t size() const noexcept { return reads_.size() - head_; }
  [[nodiscard]] bool empty() const noexcept { return head_ == reads_.size(); }
  /// All of them; valid until the next push or pop.
  [[nodiscard]] std::span<Read* const> front() const noexcept { return std::span(reads_).subspan(head_); }
  /// The reads from the front on that follow one another in one file, for one request of at most `most_bytes`; those
  /// that were joined to one stay together. At least one; the queue is not empty.
  [[nodiscard]] std::span<Read* const> front_run(std::uint64_t most_bytes) const noexcept {
    const std::span<Read* const> reads = front();
    std::uint64_t bytes = reads.front()->size;
    std::size_t count = 1;
    for (; count < reads.size(); ++count) {
      const Read& before = *reads[count - 1];
      const Read& next = *reads[count];
      if (next.file != before.file || next.offset != before.offset + before.size) break;
      if (!next.joined && bytes + next.size > most_bytes) break;
      bytes += next.size;
    }
    return reads.first(count);
  }
  void pop(std::size_t count) noexcept {
    head_ += count;
    if (!empty() && head_ < kMostPopped) return;
    reads_.erase(reads_.begin(), reads_.begin() + static_cast<std::ptrdiff_t>(head_));
    head_ = 0;
  }
  /// Whether there is a read after the first `count` that has their owner; for a count of 0, whether there is one.
  [[nodiscard]] bool continues(std::size_t count) const noexcept {
    const std::span<Read* const> reads = front();
    return count < reads.size() && (count == 0 || reads[count]->owner == reads[count - 1]->owner);
  }
  /// Whether all of the reads were given up: they end as they are.
  static bool are_cancelled(std::span<Read* const> reads) noexcept {
    return std::all_of(reads.begin(), reads.end(), [](const Read* read) {
      return read->cancelled != nullptr && read->cancelled->load(std::memory_order_relaxed);
    });
  }

 private:
  static constexpr std::size_t kMostPopped = 256;  // a queue that is never empty does not grow for ever

  std::vector<Read*> reads_;
  std::size_t head_ = 0;
};

}  // namespace penstock
