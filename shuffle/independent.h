// Independent: M draws an epoch with replacement, each by the weights alone, whatever the others are.
//
// Draw d of an epoch is a number t below the total T of the weights, by a hash of (seed, epoch, d), and of it the first
// observation whose prefix sum exceeds t. t is exactly uniform: a hash that would favour some numbers is passed over
// (Lemire, "Fast random integer generation in an interval", 2019). docs/order.md has the formula. Immutable: any
// thread.
#pragma once

#include "core/job/order.h"
#include "shuffle/key.h"
#include "shuffle/lane_fetches.h"
#include "shuffle/weight_table.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace penstock::shuffle {

class Independent final : public Order {
 public:
  /// `size`: draws in an epoch. `fetch` of them in a lane are read together. `name` is the order's, in its identity.
  /// Throws InvalidArgument for a size of 0 or above 2^52, or a fetch or lanes of 0.
  Independent(WeightTable table, std::uint64_t seed, std::uint64_t size, std::uint64_t fetch, std::uint64_t lanes,
              std::string name = "weighted");

  void pick(std::uint64_t first, std::uint64_t stride, std::span<Pick> out) const override;
  [[nodiscard]] std::uint64_t epoch_size() const override { return size_; }
  [[nodiscard]] std::uint64_t end(std::uint64_t) const override { return kNever; }
  [[nodiscard]] std::uint64_t fetch_end(std::uint64_t position) const override { return fetches_.end(position); }
  [[nodiscard]] std::string identity(std::uint64_t position) const override;
  [[nodiscard]] OrderDifference difference_to(std::string_view saved, std::uint64_t position) const override;

 private:
  WeightTable table_;
  std::uint64_t seed_;
  std::uint64_t size_;
  LaneFetches fetches_;
  std::string name_;
  std::string digest_;
};

}  // namespace penstock::shuffle
