// Weighted: M draws an epoch, in which each observation comes as often as its weight says; another order mixes them.
//
// The draws of an epoch ascend (shuffle/weight_table.h), so neighbouring draws are neighbours in the dataset, and an
// order of blocks over draws reads runs of them. An epoch is M positions; "each once an epoch" does not hold.
// Immutable: any thread.
#pragma once

#include "core/job/order.h"
#include "shuffle/weight_table.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace penstock::shuffle {

class Weighted final : public Order {
 public:
  /// `draws`: the order of an epoch's draws; its epoch size is their number M. `name` is the order's, in its identity.
  /// Throws InvalidArgument if not `replace` and an observation is expected more than once.
  Weighted(WeightTable table, std::shared_ptr<const Order> draws, std::uint64_t seed, bool replace,
           std::string name = "weighted");

  void pick(std::uint64_t first, std::uint64_t stride, std::span<Pick> out) const override;
  [[nodiscard]] std::uint64_t epoch_size() const override { return draws_->epoch_size(); }
  [[nodiscard]] std::uint64_t end(std::uint64_t) const override { return kNever; }
  [[nodiscard]] std::uint64_t fetch_end(std::uint64_t position) const override { return draws_->fetch_end(position); }
  [[nodiscard]] std::string identity(std::uint64_t position) const override;

 private:
  WeightTable table_;
  std::shared_ptr<const Order> draws_;
  std::uint64_t seed_;
  std::string name_;
  std::string digest_;
};

}  // namespace penstock::shuffle
