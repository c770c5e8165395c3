// BlocksEpoch: one epoch of the order Blocks, with its keys. Made and dropped inside one pick(). One thread.
#pragma once

#include "core/job/order.h"
#include "shuffle/key.h"
#include "shuffle/lane_table.h"
#include "shuffle/permutation.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace penstock::shuffle {

class BlocksEpoch {
 public:
  BlocksEpoch(std::uint64_t size, const BlocksShape& shape, const LaneTable& table, std::uint64_t seed,
              std::uint64_t epoch);

  /// out[i].index = the observation at offset + i * stride of this epoch; all offsets are below the size.
  void pick(std::uint64_t offset, std::uint64_t stride, std::span<Pick> out) const;

 private:
  using Chunk = std::array<std::uint64_t, kKernelBlock>;
  /// Every `every`-th Pick of a run: those of one lane.
  struct Picks {
    Pick* first;
    std::size_t every;
    std::size_t count;
  };

  void pick_lane(std::uint64_t number, std::uint64_t time, std::uint64_t step, Picks out) const;
  /// Elements of the sequence S -> observations, in place.
  void observe(std::span<std::uint64_t> elements) const;
  [[nodiscard]] Permutation permutation(std::uint64_t size, Key key) const { return {size, key.state()}; }
  /// Number of a lane's `fetch`-th fetch in this epoch, among all fetches of all epochs; modulo 2^64.
  [[nodiscard]] std::uint64_t fetch_number(std::uint64_t lane, std::uint64_t fetch) const noexcept;
  [[nodiscard]] std::uint64_t piece_begin(std::uint64_t number) const;

  std::uint64_t size_;
  std::uint64_t epoch_;
  const BlocksShape& shape_;
  const LaneTable& table_;
  Key key_;
  std::uint64_t turn_;
  std::uint64_t block_count_;
  std::optional<Permutation> block_order_;  // none where there is no whole block
};

}  // namespace penstock::shuffle
