// Positions: how many observations a job has consumed, and their bounds.
#pragma once

#include <cstdint>

namespace penstock {

/// Positions are at most this.
inline constexpr std::uint64_t kMostPosition = std::uint64_t{1} << 63;
/// In place of a position: there is none.
inline constexpr std::uint64_t kNoPosition = UINT64_MAX;

}  // namespace penstock
