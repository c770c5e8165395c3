#include "shuffle/weight_table.h"

#include "core/base/error.h"
#include "shuffle/key.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace penstock::shuffle {
namespace {

constexpr int kTotalBits = 62;  // of the sum of scaled weights, so that a draw's place fits 64 bits
constexpr double kExactBelow = 0x1p53;

// By which power of two weights are multiplied: 0 where all are integers whose sum has no more bits than that.
int scale_of(std::span<const double> weights) {
  double sum = 0;
  bool are_integers = true;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double weight = weights[i];
    if (!std::isfinite(weight) || weight < 0) {
      raise(ErrorKind::InvalidArgument, "weight {} of observation {}: wanted a finite one of at least 0", weight,
            with_commas(i));
    }
    sum += weight;
    are_integers &= weight < kExactBelow && weight == std::floor(weight);
  }
  if (!(sum > 0)) raise(ErrorKind::InvalidArgument, "all {} weights are 0", with_commas(weights.size()));
  if (!std::isfinite(sum)) raise(ErrorKind::InvalidArgument, "the sum of the weights is beyond 2^1023");
  const int bits = std::ilogb(sum) + 1;
  return are_integers && bits < kTotalBits ? 0 : kTotalBits - 1 - bits;
}

}  // namespace

WeightTable::WeightTable(std::span<const double> weights) {
  if (weights.empty()) raise(ErrorKind::InvalidArgument, "no weights");
  const int scale = scale_of(weights);
  sums_.reserve(weights.size());
  std::uint64_t sum = 0;
  // Exact, but for the last bit of weights that are no multiples of 2^-scale: platforms agree.
  for (const double weight : weights) {
    sum += static_cast<std::uint64_t>(std::nearbyint(std::ldexp(weight, scale)));
    sums_.push_back(sum);
  }
  assert(sum < (std::uint64_t{1} << 63));
  by_total_ = Reciprocal(sum);
}

std::uint64_t WeightTable::systematic(std::uint64_t draw, std::uint64_t draws, std::uint64_t offset) const {
  assert(draw < draws && offset < total());
  return at(static_cast<std::uint64_t>((Wide{draw} * total() + offset) / draws));
}

std::uint64_t WeightTable::at(std::uint64_t place) const {
  assert(place < total());
  return static_cast<std::uint64_t>(std::upper_bound(sums_.begin(), sums_.end(), place) - sums_.begin());
}

std::uint64_t WeightTable::pick(std::uint64_t begin, std::uint64_t end, std::uint64_t random) const {
  const std::uint64_t before = begin == 0 ? 0 : sums_[begin - 1];
  assert(sums_[end - 1] > before);
  const std::uint64_t at = before + scale64(random, sums_[end - 1] - before);
  const auto first = sums_.begin() + static_cast<std::ptrdiff_t>(begin);
  const auto last = sums_.begin() + static_cast<std::ptrdiff_t>(end);
  return static_cast<std::uint64_t>(std::upper_bound(first, last, at) - sums_.begin());
}

void WeightTable::check_without_replacement(std::uint64_t draws) const {
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    const std::uint64_t weight = sums_[i] - std::exchange(before, sums_[i]);
    if (Wide{weight} * draws <= total()) continue;
    raise(ErrorKind::InvalidArgument,
          "observation {} is expected {:.3f} times in {} draws: too heavy for replace=False, which gives it once at "
          "most; take a smaller size= or weight",
          with_commas(i), static_cast<double>(weight) * static_cast<double>(draws) / static_cast<double>(total()),
          with_commas(draws));
  }
}

DigestBytes WeightTable::digest() const {
  return digest_of(std::as_bytes(std::span(sums_)));
}

}  // namespace penstock::shuffle
