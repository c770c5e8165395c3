// The round function and the key stream of algorithm 1, as two pure functions. Any thread.
//
// Everything here is always inlined: files compiled for AVX2 or AVX-512 use it too, and a copy of theirs that the
// linker chose for the rest of the program would fault on an older machine (docs/decisions.md, "one kernel source,
// three forms").
#pragma once

#include <cstdint>

namespace penstock::shuffle {

/// A 64-bit key of one round, as the two halves that the round function takes.
struct RoundKey {
  std::uint32_t low = 0;
  std::uint32_t high = 0;
};

/// `fmixk`: murmur3's finalizer with the key's halves put before each multiplication; 32-bit lanes only.
struct Fmixk {
  [[gnu::always_inline]] static inline std::uint32_t apply(std::uint32_t half, std::uint32_t low, std::uint32_t high) {
    std::uint32_t h = half ^ low;
    h *= 0x85ebca6bU;
    h ^= h >> 15;
    h += high;
    h *= 0xc2b2ae35U;
    h ^= h >> 16;
    return h;
  }
};

/// `hash` of 32 bits scaled to [0, side): a multiplication and a shift, no division. Its bias is at most side / 2^32.
[[gnu::always_inline]] inline std::uint32_t scale(std::uint32_t hash, std::uint32_t side) {
  return static_cast<std::uint32_t>((static_cast<std::uint64_t>(hash) * side) >> 32);
}

}  // namespace penstock::shuffle
