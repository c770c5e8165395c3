// Bucketed: the uniform order, in which observations of like length stand together: batches of it need little padding.
//
// The uniform order of an epoch is cut into pools. A pool's observations are sorted by length (equal ones stay in the
// uniform order), the sorted pool is cut into buckets, and the buckets are permuted; one that is not full, of a pool's
// longest, stays last. Buckets are no batches, so the order depends on no batch size. A position costs its pool, which
// is sorted once and kept for the positions beside it. Immutable but for the pools kept: any thread.
#pragma once

#include "core/job/order.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace penstock::shuffle {

class Bucketed final : public Order {
 public:
  /// lengths[i] belongs to observation i. Throws InvalidArgument: none, more than 2^52; a pool of 0, or above 2^24; a
  /// bucket of 0, or above the pool.
  Bucketed(std::vector<std::uint32_t> lengths, std::uint64_t seed, std::uint64_t pool, std::uint64_t bucket);

  void pick(std::uint64_t first, std::uint64_t stride, std::span<Pick> out) const override;
  [[nodiscard]] std::uint64_t epoch_size() const override { return lengths_.size(); }
  [[nodiscard]] std::uint64_t end(std::uint64_t) const override { return kNever; }
  [[nodiscard]] std::uint64_t fetch_end(std::uint64_t position) const override { return position + 1; }
  [[nodiscard]] std::string identity(std::uint64_t position) const override;

 private:
  struct Pool {
    std::uint32_t epoch = 0;
    std::uint64_t number = 0;
    std::vector<std::uint64_t> indices;  // at each of its places
  };
  using PoolPtr = std::shared_ptr<const Pool>;

  [[nodiscard]] PoolPtr pool_of(std::uint32_t epoch, std::uint64_t number) const;
  [[nodiscard]] PoolPtr make(std::uint32_t epoch, std::uint64_t number) const;

  std::vector<std::uint32_t> lengths_;
  std::uint64_t seed_;
  std::uint64_t pool_;
  std::uint64_t bucket_;
  std::string digest_;
  // Guards what follows, for as long as it takes to copy a pointer: this folder has no mutexes.
  mutable std::atomic_flag busy_;
  mutable std::array<PoolPtr, 4> kept_;
  mutable std::size_t next_ = 0;  // of kept_, to be replaced
};

}  // namespace penstock::shuffle
