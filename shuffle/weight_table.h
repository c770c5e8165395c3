// WeightTable: weights of observations as prefix sums of integers, and systematic draws from them.
//
// An epoch of M draws has one offset o; draw j of them stands at t = (j * T + o) div M of the total T and takes the
// first observation whose prefix sum exceeds t. So an observation that is expected x times comes floor(x) or ceil(x)
// times, and the draws ascend. Systematic sampling: Madow and Madow, "On the theory of systematic sampling", 1944.
// Immutable; any thread. 8 bytes an observation.
#pragma once

#include "core/base/digest.h"

#include <cstdint>
#include <span>
#include <vector>

namespace penstock::shuffle {

class WeightTable {
 public:
  /// Weights that are integers below 2^53 keep their ratios exactly; others are scaled by a power of two and rounded to
  /// about 62 bits. Throws InvalidArgument, which names the observation, for a weight that is negative or not finite,
  /// if all are 0, or if there are none.
  explicit WeightTable(std::span<const double> weights);

  /// The observation of draw `draw` < draws, with an offset below draws' share: offset < total().
  [[nodiscard]] std::uint64_t draw(std::uint64_t draw, std::uint64_t draws, std::uint64_t offset) const;
  /// Throws InvalidArgument, which names the observation, if one is expected more than once in this many draws.
  void check_without_replacement(std::uint64_t draws) const;

  [[nodiscard]] std::uint64_t size() const noexcept { return sums_.size(); }
  [[nodiscard]] std::uint64_t total() const noexcept { return sums_.back(); }
  /// Of the prefix sums.
  [[nodiscard]] DigestBytes digest() const;

 private:
  std::vector<std::uint64_t> sums_;
};

}  // namespace penstock::shuffle
