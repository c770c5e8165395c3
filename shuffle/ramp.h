// Ramps: the weights with which a mixture goes from one stage's shares to the next one's, step by step.
//
// A staircase of equal steps: step k of K has the shares of the middle of its stretch, (2 k + 1) / (2 K) of the way, so
// that each step gives what the straight line would. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace penstock::shuffle {

/// Steps of a ramp are at most this.
inline constexpr std::uint64_t kMostRampSteps = 1024;
/// And so long, but for a ramp that is shorter itself: each step rounds the shares to whole units.
inline constexpr std::uint64_t kLeastStep = 16;

/// The weights of step `step` of `steps`, from the shares of the weights `from` to those of `to`; both by source, with
/// sums below 2^62. With a sum of A and one of B they are (2 K - 2 k - 1) a B + (2 k + 1) b A: exact where 2 K A B is
/// below 2^62; beyond, within 2^-48 of their sum, which stays below 2^62.
std::vector<std::uint64_t> ramp_weights(std::span<const std::uint64_t> from, std::span<const std::uint64_t> to,
                                        std::uint64_t step, std::uint64_t steps);

}  // namespace penstock::shuffle
