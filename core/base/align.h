// Sizes rounded up.
#pragma once

#include <cstdint>

namespace penstock {

constexpr std::uint64_t kCacheLine = 64;  // bytes; enough for any vector load

/// The least multiple of `to` that is not below `bytes`.
constexpr std::uint64_t align_up(std::uint64_t bytes, std::uint64_t to) noexcept {
  return (bytes + to - 1) / to * to;
}

}  // namespace penstock
