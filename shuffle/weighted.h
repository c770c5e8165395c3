// Weighted: M draws an epoch, in which each observation comes as often as its weight says; another order mixes them.
//
// The draws of an epoch ascend (shuffle/draw_tree.h), so neighbouring draws are neighbours in the dataset, and an order
// of blocks over draws reads runs of them. An epoch is M positions; "each once an epoch" does not hold.
// Immutable: any thread.
#pragma once

#include "core/job/order.h"
#include "shuffle/weight_table.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace penstock::shuffle {

/// How an epoch's draws are taken: the algorithm's number in the identity. The first two give each observation floor or
/// ceil of its expectation, but systematic draws stand at equal distances: labels with a period alias with them.
/// Independent ones are another order, shuffle/independent.h.
enum class Draws : std::uint64_t { Systematic = 1, Rounded = 2, Independent = 3 };

class Weighted final : public Order {
 public:
  /// `mixed`: the order of an epoch's draws; its epoch size is their number M. `name` is the order's, in its identity.
  /// Throws InvalidArgument if not `replace` and an observation is expected more than once.
  Weighted(WeightTable table, std::shared_ptr<const Order> mixed, std::uint64_t seed, bool replace,
           Draws draws = Draws::Rounded, std::string name = "weighted");

  void pick(std::uint64_t first, std::uint64_t stride, std::span<Pick> out) const override;
  [[nodiscard]] std::uint64_t epoch_size() const override { return mixed_->epoch_size(); }
  [[nodiscard]] std::uint64_t end(std::uint64_t) const override { return kNever; }
  [[nodiscard]] std::uint64_t fetch_end(std::uint64_t position) const override { return mixed_->fetch_end(position); }
  [[nodiscard]] std::string identity(std::uint64_t position) const override;
  [[nodiscard]] OrderDifference difference_to(std::string_view saved, std::uint64_t position) const override;

 private:
  void draw(std::uint32_t epoch, std::span<Pick> picks) const;

  WeightTable table_;
  std::shared_ptr<const Order> mixed_;
  std::uint64_t seed_;
  Draws draws_;
  std::string name_;
  std::string digest_;
};

}  // namespace penstock::shuffle
