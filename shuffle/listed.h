// Listed: the order of a user's own, as the indices of an epoch in an array; each epoch is the same.
//
// Indices may come more than once, or never: "each once an epoch" does not hold, and an epoch is as long as the array.
// Immutable: any thread.
#pragma once

#include "core/job/order.h"
#include "shuffle/index_list.h"
#include "shuffle/lane_fetches.h"

#include <cstdint>
#include <span>
#include <string>

namespace penstock::shuffle {

class Listed final : public Order {
 public:
  /// `digest` is of the indices, all of which the view has; `fetch` positions of each of `lanes` are read together.
  /// Throws InvalidArgument for no indices, or a fetch or lanes of 0.
  Listed(IndexList indices, std::string digest, std::uint64_t fetch, std::uint64_t lanes);

  void pick(std::uint64_t first, std::uint64_t stride, std::span<Pick> out) const override;
  [[nodiscard]] std::uint64_t epoch_size() const override { return indices_.size; }
  [[nodiscard]] std::uint64_t end(std::uint64_t) const override { return kNever; }
  [[nodiscard]] std::uint64_t fetch_end(std::uint64_t position) const override { return fetches_.end(position); }
  [[nodiscard]] std::string identity(std::uint64_t position) const override;

 private:
  IndexList indices_;
  std::string digest_;
  LaneFetches fetches_;
};

}  // namespace penstock::shuffle
