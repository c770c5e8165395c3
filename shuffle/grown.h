// Grown: the order of a job whose dataset grew: epochs over the first shards, then epochs over more of them.
//
// Each part is the order over a dataset as it was, from a position on where an epoch ends. Epoch number e of a part is
// what the part's own order gives as epoch e, so the epochs of all parts are numbered on. A part's dataset begins with
// the one before it, so observation i is the same in both. Immutable: any thread.
#pragma once

#include "core/job/epochs.h"
#include "core/job/order.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace penstock::shuffle {

class Grown final : public Order {
 public:
  struct Part {
    std::uint64_t begin = 0;             // the first at 0, others at ends of epochs of the one before
    std::shared_ptr<const Order> order;  // without stages
    std::string source;                  // JSON of what the part's observations are, as a state says it
  };

  /// Throws InvalidArgument: none, an order with stages, a part that begins within an epoch or has fewer observations
  /// than the one before it, positions beyond 2^63.
  explicit Grown(std::vector<Part> parts);

  void pick(std::uint64_t first, std::uint64_t stride, std::span<Pick> out) const override;
  void pick_at(std::span<const std::uint64_t> positions, std::span<Pick> out) const override;
  /// Of the last part.
  [[nodiscard]] std::uint64_t epoch_size() const override { return parts_.back().order->epoch_size(); }
  [[nodiscard]] EpochSizes epoch_sizes() const override;
  [[nodiscard]] std::uint64_t end(std::uint64_t) const override { return kNever; }
  /// At most the part's end.
  [[nodiscard]] std::uint64_t fetch_end(std::uint64_t position) const override;
  [[nodiscard]] std::string identity(std::uint64_t position) const override;
  [[nodiscard]] bool may_wait() const override;

 private:
  // The number of the part that a position is in, and where it ends.
  [[nodiscard]] std::size_t part_of(std::uint64_t position) const noexcept;
  [[nodiscard]] std::uint64_t end_of(std::size_t part) const noexcept {
    return part + 1 < parts_.size() ? parts_[part + 1].begin : kNever;
  }

  std::vector<Part> parts_;
  std::vector<std::uint64_t> shifts_;  // position + shift is the position in the part's own order, modulo 2^64
};

}  // namespace penstock::shuffle
