// LaneTable: how the positions of an epoch of Blocks (shuffle/blocks.h) fall to lanes. Immutable: any thread.
#pragma once

#include <cstdint>

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

}  // namespace penstock::shuffle
