// MemoryBound: how much memory batches and fetches may take: `max_bytes`, but never less than what is needed to go on.
//
// Any thread.
#pragma once

#include "core/base/sync.h"

#include <algorithm>
#include <cstdint>

namespace penstock {

class MemoryBound {
 public:
  /// `kept_bytes` of `max_bytes` are for what sources keep; `batches` are those that must always fit.
  MemoryBound(std::uint64_t max_bytes, std::uint64_t kept_bytes, std::uint64_t batches)
      : bytes_(max_bytes - std::min(max_bytes, kept_bytes)), batches_(batches) {}

  /// The most that one batch or fetch may take where a file states its size: max_bytes, but at least 64 MiB, since a
  /// small max_bytes asks for little read-ahead, not for short documents.
  [[nodiscard]] std::uint64_t most_by_file() const noexcept { return std::max(bytes_, kLeastByFile); }

  /// A batch held this many bytes.
  void note_batch(std::uint64_t bytes) noexcept { raise(largest_batch_, bytes); }
  /// Of the batches seen so far; what the next one will hold is known only once it was read.
  [[nodiscard]] std::uint64_t largest_batch() const noexcept { return largest_batch_.load(std::memory_order_relaxed); }

  /// For all batches together, if the largest has `batch` bytes.
  [[nodiscard]] std::uint64_t limit(std::uint64_t batch) const noexcept { return std::max(bytes_, batches_ * batch); }

  /// Whether a further batch of this size may exist beside those that have `in_use`.
  [[nodiscard]] bool allows_batch(std::uint64_t bytes, std::uint64_t in_use) const noexcept {
    const std::uint64_t largest = std::max(largest_batch(), bytes);
    const std::uint64_t left = bytes_ - std::min(bytes_, fetched());
    return in_use + bytes <= std::max(left, batches_ * largest);
  }

  /// What fetches hold.
  void add_fetched(std::uint64_t bytes) noexcept { fetched_ += bytes; }
  void remove_fetched(std::uint64_t bytes) noexcept { fetched_ -= bytes; }
  [[nodiscard]] std::uint64_t fetched() const noexcept { return fetched_; }

  /// Memory of fetches that have ended, kept for fetches to come. It counts as free.
  void add_spare(std::uint64_t bytes) noexcept { spare_ += bytes; }
  void remove_spare(std::uint64_t bytes) noexcept { spare_ -= bytes; }
  /// Whether it must be given up for `more` bytes, beside the batches' `in_use` and what fetches hold.
  [[nodiscard]] bool needs_spares(std::uint64_t in_use, std::uint64_t more) const noexcept {
    return spare_ > 0 && in_use + fetched_ + spare_ + more > bytes_;
  }

  /// Rows of a fetch held this many bytes in the mean; the largest mean of a part is what later ones are estimated by.
  void note_row(std::uint64_t bytes) noexcept { raise(largest_row_, bytes); }
  [[nodiscard]] std::uint64_t largest_row() const noexcept { return largest_row_.load(std::memory_order_relaxed); }

  /// What a further fetch may take beside the batches, of which `in_use` bytes exist.
  [[nodiscard]] std::uint64_t left_for_fetches(std::uint64_t in_use) const noexcept {
    const std::uint64_t taken = std::max(in_use, batches_ * largest_batch()) + fetched_;
    return bytes_ - std::min(bytes_, taken);
  }

 private:
  static void raise(sync::Atomic<std::uint64_t>& largest, std::uint64_t bytes) noexcept {
    std::uint64_t seen = largest.load(std::memory_order_relaxed);
    while (bytes > seen && !largest.compare_exchange_weak(seen, bytes, std::memory_order_relaxed)) {
    }
  }

  static constexpr std::uint64_t kLeastByFile = 64U << 20;

  const std::uint64_t bytes_;
  const std::uint64_t batches_;
  sync::Atomic<std::uint64_t> largest_batch_{0};
  sync::Atomic<std::uint64_t> fetched_{0};
  sync::Atomic<std::uint64_t> spare_{0};
  sync::Atomic<std::uint64_t> largest_row_{0};
};

}  // namespace penstock
