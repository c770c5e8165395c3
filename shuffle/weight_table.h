// WeightTable: weights of observations as prefix sums of integers, and what they give of a number of draws.
//
// Draws of an epoch are made by a DrawTree (shuffle/draw_tree.h). Those of runs that began before it are systematic: an
// epoch of M draws has one offset o; draw j of them stands at t = (j * T + o) div M of the total T and takes the first
// observation whose prefix sum exceeds t. Madow and Madow, "On the theory of systematic sampling", 1944.
// Immutable; any thread. 8 bytes an observation.
#pragma once

#include "core/base/digest.h"
#include "shuffle/reciprocal.h"

#include <cstdint>
#include <span>
#include <vector>

namespace penstock::shuffle {

/// How many draws are expected: whole + part / total of the table, part < total.
struct Expected {
  std::uint64_t whole = 0;
  std::uint64_t part = 0;

  /// Of what lies between two boundaries: this less the earlier one.
  [[nodiscard]] Expected minus(const Expected& earlier, std::uint64_t total) const noexcept {
    const std::uint64_t borrow = part < earlier.part ? 1 : 0;
    return {whole - earlier.whole - borrow, part - earlier.part + (total & (0 - borrow))};
  }
};

class WeightTable {
 public:
  /// Weights that are integers below 2^53 keep their ratios exactly; others are scaled by a power of two and rounded to
  /// about 62 bits. Throws InvalidArgument, which names the observation, for a weight that is negative or not finite,
  /// if all are 0, or if there are none.
  explicit WeightTable(std::span<const double> weights);

  /// The observation of the systematic draw `draw` < draws, with offset < total().
  [[nodiscard]] std::uint64_t systematic(std::uint64_t draw, std::uint64_t draws, std::uint64_t offset) const;
  /// The first observation whose prefix sum exceeds `place` < total(). O(log size()).
  [[nodiscard]] std::uint64_t at(std::uint64_t place) const;
  /// Of `draws` <= 2^52, those that the first `count` observations are expected to get, 1 <= count <= size().
  [[nodiscard]] Expected expected(std::uint64_t count, std::uint64_t draws) const noexcept {
    const auto [whole, part] = by_total_.divide(Wide{draws} * sums_[count - 1]);
    return {whole, part};
  }
  /// Brings what expected(count, …) reads into the cache; count <= size().
  void prefetch(std::uint64_t count) const noexcept { __builtin_prefetch(&sums_[count - (count > 0 ? 1 : 0)]); }
  /// One observation of [begin, end) by their weights, of which one at least is above 0; `random` has 64 bits.
  [[nodiscard]] std::uint64_t pick(std::uint64_t begin, std::uint64_t end, std::uint64_t random) const;
  /// Throws InvalidArgument, which names the observation, if one is expected more than once in this many draws.
  void check_without_replacement(std::uint64_t draws) const;

  [[nodiscard]] std::uint64_t size() const noexcept { return sums_.size(); }
  [[nodiscard]] std::uint64_t total() const noexcept { return sums_.back(); }
  /// Of the prefix sums.
  [[nodiscard]] DigestBytes digest() const;

 private:
  std::vector<std::uint64_t> sums_;
  Reciprocal by_total_{1};
};

}  // namespace penstock::shuffle
