#include "shuffle/lane_table.h"

namespace penstock::shuffle {

LaneTable::LaneTable(std::uint64_t size, const BlocksShape& shape)
    : long_lanes_(size % shape.lanes),
      short_length_(size / shape.lanes),
      long_ragged_((short_length_ + 1) % shape.block),
      short_ragged_(short_length_ % shape.block),
      ragged_begin_(long_lanes_ * (short_length_ + 1 - long_ragged_) +
                    (shape.lanes - long_lanes_) * (short_length_ - short_ragged_)) {}

LaneTable::Lane LaneTable::lane(std::uint64_t number) const noexcept {
  const std::uint64_t long_whole = short_length_ + 1 - long_ragged_;
  if (number < long_lanes_) return {short_length_ + 1, long_whole, number * long_whole};
  const std::uint64_t whole = short_length_ - short_ragged_;
  return {short_length_, whole, long_lanes_ * long_whole + (number - long_lanes_) * whole};
}

}  // namespace penstock::shuffle
