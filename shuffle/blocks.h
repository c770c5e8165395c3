// Blocks: a shuffle that reads runs of adjacent observations: blocks are permuted, and so is each fetch of several.
//
// One epoch of N observations, with blocks of m, fetches of f and L lanes:
//   - The dataset, turned by a random offset, is cut into F = N div m blocks and one short block of N mod m. The blocks
//     in a random order and the short one behind them make the sequence S of all observations.
//   - Position p belongs to lane p mod L, so that ranks whose number divides L own whole lanes. A lane with K positions
//     takes K div m whole blocks of S, side by side, and then a ragged piece of K mod m observations; the pieces of all
//     lanes are cut from what is left of S, and a random choice says which lane gets which.
//   - A lane walks its own observations in fetches of f, the last one shorter; each fetch is permuted with a key of its
//     own. So a fetch of a lane is f div m whole blocks; only the last one of an epoch holds the ragged piece too.
// Every step is a bijection whatever N, m, f and L are, and takes constant time and memory. The turn decides what falls
// into the short block and the ragged pieces, so that in the long run every observation does equally often.
// Immutable: any thread.
#pragma once

#include "core/job/order.h"
#include "shuffle/lane_table.h"

#include <cstdint>
#include <span>
#include <string>

namespace penstock::shuffle {

class Blocks final : public Order {
 public:
  /// Throws InvalidArgument if `size` is 0 or above 2^52, or block, fetch or lanes is 0, or fetch no multiple of block.
  Blocks(std::uint64_t size, std::uint64_t seed, BlocksShape shape);

  void pick(std::uint64_t first, std::uint64_t stride, std::span<Pick> out) const override;
  [[nodiscard]] std::uint64_t epoch_size() const override { return size_; }
  [[nodiscard]] std::uint64_t end(std::uint64_t) const override { return kNever; }
  /// Of the fetches of all lanes, which begin and end together; at most the epoch's end.
  [[nodiscard]] std::uint64_t fetch_end(std::uint64_t position) const override;
  [[nodiscard]] std::string identity(std::uint64_t position) const override;

 private:
  std::uint64_t size_;
  std::uint64_t seed_;
  BlocksShape shape_;
  LaneTable table_;
};

}  // namespace penstock::shuffle
