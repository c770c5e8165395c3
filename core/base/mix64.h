// mix64: SplitMix64's output function, a bijection of 64 bits in which every input bit reaches every output bit.
//
// Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014. Pure; any thread.
#pragma once

#include <cstdint>

namespace penstock {

constexpr std::uint64_t mix64(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

}  // namespace penstock
