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

#include <cstdint>
#include <span>
#include <string>

namespace penstock::shuffle {

struct BlocksShape {
  std::uint64_t block = 1;  // adjacent observations that stay together, m
  std::uint64_t fetch = 1;  // observations of a lane that are mixed, f; a multiple of block
  std::uint64_t lanes = 1;  // L
};

/// How N positions fall to lanes, and what lanes take of the sequence S. All lanes have one of two lengths.
class LaneTable {
 public:
  LaneTable(std::uint64_t size, const BlocksShape& shape);

  struct Lane {
    std::uint64_t length = 0;       // positions, K
    std::uint64_t whole = 0;        // of them in whole blocks
    std::uint64_t whole_begin = 0;  // where these begin in S
  };
  /// Lane `number` < lanes, counted from the lane of the epoch's first position on.
  [[nodiscard]] Lane lane(std::uint64_t number) const noexcept;

  /// Lanes that have one position more than the others; they come first.
  [[nodiscard]] std::uint64_t long_lanes() const noexcept { return long_lanes_; }
  [[nodiscard]] std::uint64_t long_ragged() const noexcept { return long_ragged_; }
  [[nodiscard]] std::uint64_t short_ragged() const noexcept { return short_ragged_; }
  /// Where the ragged pieces begin in S.
  [[nodiscard]] std::uint64_t ragged_begin() const noexcept { return ragged_begin_; }

 private:
  std::uint64_t long_lanes_;
  std::uint64_t short_length_;
  std::uint64_t long_ragged_;
  std::uint64_t short_ragged_;
  std::uint64_t ragged_begin_;
};

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
