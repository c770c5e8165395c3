// LaneFetches: which positions of an order are read together, where that decides none of them. A value; any thread.
//
// Position p of an epoch belongs to lane p mod `lanes`; `fetch` positions of a lane that follow one another are a
// fetch.
#pragma once

#include "core/base/error.h"
#include "shuffle/epoch_run.h"

#include <algorithm>
#include <cstdint>

namespace penstock::shuffle {

class LaneFetches {
 public:
  /// Of an order of `size` >= 1. Throws InvalidArgument for a fetch or lanes of 0; `order` is for its message.
  LaneFetches(const char* order, std::uint64_t size, std::uint64_t fetch, std::uint64_t lanes)
      : size_(size), fetch_(fetch), lanes_(std::min(lanes, size)) {  // each position is a lane of its own then
    if (fetch == 0 || lanes == 0) {
      raise(ErrorKind::InvalidArgument, "order {}: fetch {}, lanes {}: wanted at least 1 of each", order, fetch, lanes);
    }
    of_a_lane_ = (size - 1) / lanes_ / fetch + 1;
  }

  /// The fetch of the position `offset` of an epoch.
  [[nodiscard]] std::uint64_t number(std::uint32_t epoch, std::uint64_t offset) const noexcept {
    if (fetch_ == 1) return epoch * size_ + offset;  // no divisions
    return (epoch * of_a_lane_ + offset / lanes_ / fetch_) * lanes_ + offset % lanes_;
  }
  /// See Order::fetch_end.
  [[nodiscard]] std::uint64_t end(std::uint64_t position) const {
    return fetch_ == 1 ? position + 1 : fetches_end(size_, fetch_, lanes_, position);
  }

 private:
  std::uint64_t size_;
  std::uint64_t fetch_;
  std::uint64_t lanes_;
  std::uint64_t of_a_lane_ = 1;  // in an epoch
};

}  // namespace penstock::shuffle
