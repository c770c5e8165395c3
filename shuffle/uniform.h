// Uniform: every observation once an epoch, in an order that (seed, epoch) chooses among all: the global shuffle.
//
// Epoch e is Permutation(N, seed, e). Immutable: any thread.
#pragma once

#include "core/job/order.h"
#include "shuffle/permutation.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace penstock::shuffle {

class Uniform final : public Order {
 public:
  /// Throws InvalidArgument if `size` is 0 or above 2^52.
  Uniform(std::uint64_t size, std::uint64_t seed);

  void pick(std::uint64_t first, std::uint64_t stride, std::span<Pick> out) const override;
  void pick_at(std::span<const std::uint64_t> positions, std::span<Pick> out) const override;
  [[nodiscard]] std::uint64_t epoch_size() const override { return size_; }
  [[nodiscard]] std::uint64_t end(std::uint64_t) const override { return kNever; }
  [[nodiscard]] std::uint64_t fetch_end(std::uint64_t position) const override { return position + 1; }
  [[nodiscard]] std::string identity(std::uint64_t position) const override;

 private:
  [[nodiscard]] const Permutation& permutation(std::uint32_t epoch, std::optional<Permutation>& made) const;

  std::uint64_t size_;
  std::uint64_t seed_;
  std::vector<Permutation> kept_;  // of the first epochs
};

}  // namespace penstock::shuffle
