// Reciprocal: division of 128 bits by one 64-bit number again and again, by two multiplications.
//
// Möller and Granlund, "Improved division by invariant integers", IEEE Transactions on Computers, 2011, algorithm 4.
// A value, immutable: any thread.
#pragma once

#include <bit>
#include <cassert>
#include <cstdint>

namespace penstock::shuffle {

__extension__ using Wide = unsigned __int128;

class Reciprocal {
 public:
  struct Result {
    std::uint64_t quotient = 0;
    std::uint64_t remainder = 0;
  };

  /// `divisor` is at least 1.
  explicit Reciprocal(std::uint64_t divisor)
      : divisor_(divisor),
        shift_(static_cast<unsigned>(std::countl_zero(divisor))),
        scaled_(divisor << shift_),
        inverse_(static_cast<std::uint64_t>(~Wide{0} / scaled_)) {}  // less 2^64, which the conversion takes away

  [[nodiscard]] std::uint64_t divisor() const noexcept { return divisor_; }

  /// Whether the quotient of `number` is below 2^64.
  [[nodiscard]] bool holds(Wide number) const noexcept { return number >> 64 < divisor_; }

  /// Of a number that it holds.
  [[nodiscard]] Result divide(Wide number) const noexcept {
    assert(holds(number));
    const Wide scaled = number << shift_;
    const Wide guess = Wide{inverse_} * static_cast<std::uint64_t>(scaled >> 64) + scaled;
    std::uint64_t quotient = static_cast<std::uint64_t>(guess >> 64) + 1;
    std::uint64_t remainder = static_cast<std::uint64_t>(scaled) - quotient * scaled_;
    // One too many is as likely as not: a branch would often be mispredicted.
    const std::uint64_t less = remainder > static_cast<std::uint64_t>(guess) ? 1 : 0;
    quotient -= less;
    remainder += scaled_ & (0 - less);
    if (remainder >= scaled_) [[unlikely]] {
      ++quotient;
      remainder -= scaled_;
    }
    return {quotient, remainder >> shift_};
  }

 private:
  std::uint64_t divisor_;
  unsigned shift_;
  std::uint64_t scaled_;
  std::uint64_t inverse_;
};

}  // namespace penstock::shuffle
