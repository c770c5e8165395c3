#include "shuffle/ramp.h"

#include "shuffle/reciprocal.h"

#include <bit>
#include <cstddef>
#include <numeric>

namespace penstock::shuffle {
namespace {

// Sums of these bits times each other and 2 kMostRampSteps are below 2^128.
constexpr unsigned kFittedBits = 50;
constexpr unsigned kStepBits = 61;

struct Shares {
  std::vector<std::uint64_t> weights;
  std::uint64_t sum = 0;
};

Shares divided(std::span<const std::uint64_t> weights) {
  std::uint64_t common = 0;
  for (const std::uint64_t weight : weights) common = std::gcd(common, weight);
  Shares shares;
  for (const std::uint64_t weight : weights) {
    shares.weights.push_back(weight / common);
    shares.sum += shares.weights.back();
  }
  return shares;
}

Shares fitted(Shares shares) {
  const std::uint64_t sum = shares.sum;
  if (sum >> kFittedBits == 0) return shares;
  shares.sum = 0;
  for (std::uint64_t& weight : shares.weights) {
    weight = static_cast<std::uint64_t>(((Wide{weight} << kFittedBits) + sum / 2) / sum);
    shares.sum += weight;
  }
  return shares;
}

unsigned bits_of(Wide number) {
  const auto high = static_cast<std::uint64_t>(number >> 64);
  return high != 0 ? 64U + static_cast<unsigned>(std::bit_width(high))
                   : static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(number)));
}

}  // namespace

std::vector<std::uint64_t> ramp_weights(std::span<const std::uint64_t> from, std::span<const std::uint64_t> to,
                                        std::uint64_t step, std::uint64_t steps) {
  const Shares a = fitted(divided(from));
  const Shares b = fitted(divided(to));
  const std::uint64_t past = 2 * step + 1;
  const std::uint64_t left = 2 * steps - past;
  std::vector<Wide> exact;
  Wide sum = 0;
  for (std::size_t s = 0; s < a.weights.size(); ++s) {
    exact.push_back(Wide{a.weights[s]} * b.sum * left + Wide{b.weights[s]} * a.sum * past);
    sum += exact.back();
  }
  const unsigned bits = bits_of(sum);
  const unsigned shift = bits > kStepBits ? bits - (kStepBits - 1) : 0;
  std::vector<std::uint64_t> weights;
  weights.reserve(exact.size());
  for (const Wide each : exact) {
    weights.push_back(static_cast<std::uint64_t>(shift == 0 ? each : (each + (Wide{1} << (shift - 1))) >> shift));
  }
  return weights;
}

}  // namespace penstock::shuffle
