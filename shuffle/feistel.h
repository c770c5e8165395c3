// Feistel: a keyed bijection of [0, N) by the generalized Feistel network of Black and Rogaway (Ciphers with arbitrary
// finite domains, CT-RSA 2002), with modular addition instead of exclusive or, and cycle walking.
//
// x = l * b + r with l in [0, a) and r in [0, b); even rounds add a hash of r to l modulo a, odd ones a hash of l to r
// modulo b; a value outside [0, N) goes through again. b is even: then a round can be an odd permutation, so that all
// N! orders are within reach, not only the even ones (Even and Goldreich 1983). A template over the rounds and the
// hash, so that tests can show what weaker ones fail. Immutable: any thread.
#pragma once

#include "shuffle/key.h"
#include "shuffle/round.h"

#include <array>
#include <cmath>
#include <cstdint>

namespace penstock::shuffle {

/// The two sides of the rectangle that holds [0, N): b = ceil(sqrt N) made even, a = ceil(N / b). For N <= 2^52 both
/// are at most 2^26 and a * b at most 2^52; a * b - N < b, so that walking costs at most 2 / sqrt N of an index.
struct Sides {
  std::uint64_t size = 0;
  std::uint32_t a = 0;
  std::uint32_t b = 0;

  static Sides of(std::uint64_t size) {
    // The square root only gives a first guess; integers decide, so no platform's rounding can.
    auto b = static_cast<std::uint64_t>(std::sqrt(static_cast<double>(size)));
    while (b * b < size) ++b;
    while (b > 1 && (b - 1) * (b - 1) >= size) --b;
    b += b & 1;
    return {size, static_cast<std::uint32_t>((size + b - 1) / b), static_cast<std::uint32_t>(b)};
  }
};

template <unsigned Rounds, typename Hash>
class Feistel {
  static_assert(Rounds % 2 == 0, "rounds come in pairs: one for each side");

 public:
  static constexpr unsigned kRounds = Rounds;

  Feistel() = default;
  Feistel(std::uint64_t size, Key key) : sides_(Sides::of(size)) {
    for (unsigned i = 0; i < Rounds; ++i) {
      const std::uint64_t word = key.at(i);
      keys_[i] = {static_cast<std::uint32_t>(word), static_cast<std::uint32_t>(word >> 32)};
    }
  }

  /// The image of x < N.
  [[nodiscard]] std::uint64_t forward(std::uint64_t x) const {
    do x = forward_once(x);
    while (x >= sides_.size);
    return x;
  }

  /// The x < N whose image is y < N.
  [[nodiscard]] std::uint64_t inverse(std::uint64_t y) const {
    do y = inverse_once(y);
    while (y >= sides_.size);
    return y;
  }

  [[nodiscard]] const Sides& sides() const noexcept { return sides_; }
  [[nodiscard]] const std::array<RoundKey, Rounds>& keys() const noexcept { return keys_; }

 private:
  static std::uint32_t hash(std::uint32_t half, RoundKey key, std::uint32_t side) {
    return scale(Hash::apply(half, key.low, key.high), side);
  }
  static std::uint32_t add(std::uint32_t x, std::uint32_t y, std::uint32_t side) {
    const std::uint32_t sum = x + y;  // both below 2^26
    return sum >= side ? sum - side : sum;
  }
  static std::uint32_t subtract(std::uint32_t x, std::uint32_t y, std::uint32_t side) {
    return x >= y ? x - y : x + side - y;
  }

  [[nodiscard]] std::uint64_t forward_once(std::uint64_t x) const {
    auto l = static_cast<std::uint32_t>(x / sides_.b);
    auto r = static_cast<std::uint32_t>(x % sides_.b);
    for (unsigned i = 0; i < Rounds; i += 2) {
      l = add(l, hash(r, keys_[i], sides_.a), sides_.a);
      r = add(r, hash(l, keys_[i + 1], sides_.b), sides_.b);
    }
    return static_cast<std::uint64_t>(l) * sides_.b + r;
  }

  [[nodiscard]] std::uint64_t inverse_once(std::uint64_t y) const {
    auto l = static_cast<std::uint32_t>(y / sides_.b);
    auto r = static_cast<std::uint32_t>(y % sides_.b);
    for (unsigned i = Rounds; i > 0; i -= 2) {
      r = subtract(r, hash(l, keys_[i - 1], sides_.b), sides_.b);
      l = subtract(l, hash(r, keys_[i - 2], sides_.a), sides_.a);
    }
    return static_cast<std::uint64_t>(l) * sides_.b + r;
  }

  Sides sides_;
  std::array<RoundKey, Rounds> keys_{};
};

}  // namespace penstock::shuffle
