// Keys: how (seed, epoch, size, …) become the 64-bit numbers that drive a permutation.
//
// Values are absorbed one after the other, never added: seed + epoch would make (seed 1, epoch 0) the same order as
// (seed 0, epoch 1). SplitMix64: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014.
// Thread rule: values and pure functions, any thread.
#pragma once

#include "core/base/mix64.h"

#include <cstdint>

namespace penstock::shuffle {

inline constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15U;

/// Absorbs values into 64 bits, in order; then counts out a stream of keys.
class Key {
 public:
  constexpr Key() = default;

  /// This key with `value` absorbed: mix64((state xor value) + kGolden).
  [[nodiscard]] constexpr Key absorb(std::uint64_t value) const { return Key(mix64((state_ ^ value) + kGolden)); }

  /// Number `counter` of the stream: what SplitMix64 seeded with the state gives there.
  [[nodiscard]] constexpr std::uint64_t at(std::uint64_t counter) const {
    return mix64(state_ + (counter + 1) * kGolden);
  }

  [[nodiscard]] constexpr std::uint64_t state() const { return state_; }

 private:
  explicit constexpr Key(std::uint64_t state) : state_(state) {}
  std::uint64_t state_ = 0;
};

/// `random` of 64 bits scaled to [0, range): the high half of the product.
constexpr std::uint64_t scale64(std::uint64_t random, std::uint64_t range) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(random) * range) >> 64);
}

}  // namespace penstock::shuffle
