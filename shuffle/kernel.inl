// The kernel's source; kernel_*.cpp include it once each with PENSTOCK_FORM set to the form's suffix.
//
// Plain loops that compilers turn into vectors: planar halves, rounds outermost, no division, no branch. Everything but
// the two exported functions has internal linkage and no standard header with functions is used (see round.h).
#include "shuffle/kernel.h"
#include "shuffle/round.h"

#define PENSTOCK_JOIN_(a, b) a##_##b
#define PENSTOCK_JOIN(a, b) PENSTOCK_JOIN_(a, b)

namespace penstock::shuffle {
namespace {

/// The halves of a block of indices.
struct Halves {
  alignas(64) std::uint32_t l[kKernelBlock];
  alignas(64) std::uint32_t r[kKernelBlock];
};

/// l = x / b, r = x % b. The quotient by the reciprocal is exact or one too small: x <= 2^52 is exact as a double, the two
/// roundings add less than x / b * 2^-52 < 2^-26 <= 1 / b, too little to reach the next integer. The remainder tells.
void split(const KernelInput& input, const std::uint64_t* in, Halves& halves, std::size_t count) {
  const double reciprocal = input.reciprocal_b;
  const auto b = static_cast<std::int32_t>(input.b);
  for (std::size_t i = 0; i < count; ++i) {
    // 2^52 + x in the bits of a double is x in its mantissa: a conversion that AVX2 has no instruction for.
    const double x = __builtin_bit_cast(double, in[i] | 0x4330000000000000U) - 4503599627370496.0;
    auto quotient = static_cast<std::int32_t>(x * reciprocal);
    // The remainder is below 2b, so its low 32 bits are enough.
    auto remainder = static_cast<std::int32_t>(static_cast<std::uint32_t>(in[i]) -
                                               static_cast<std::uint32_t>(quotient) * static_cast<std::uint32_t>(b));
    quotient += remainder >= b ? 1 : 0;
    remainder -= remainder >= b ? b : 0;
    halves.l[i] = static_cast<std::uint32_t>(quotient);
    halves.r[i] = static_cast<std::uint32_t>(remainder);
  }
}

bool join(const KernelInput& input, const Halves& halves, std::uint64_t* out, std::size_t count) {
  const std::uint64_t b = input.b;
  const std::uint64_t size = input.size;
  std::uint64_t outside = 0;  // the sign bit is set once a result is >= size; both are at most 2^52
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t y = static_cast<std::uint64_t>(halves.l[i]) * b + halves.r[i];
    out[i] = y;
    outside |= size - 1 - y;
  }
  return (outside >> 63) != 0;
}

/// target += F(source) modulo side.
void add_round(std::uint32_t* target, const std::uint32_t* source, std::uint32_t low, std::uint32_t high,
               std::uint32_t side, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t sum = target[i] + scale(Fmixk::apply(source[i], low, high), side);
    // The difference wraps to a huge number where sum < side, so the smaller of the two is the residue.
    const std::uint32_t reduced = sum - side;
    target[i] = reduced < sum ? reduced : sum;
  }
}

/// target -= F(source) modulo side.
void subtract_round(std::uint32_t* target, const std::uint32_t* source, std::uint32_t low, std::uint32_t high,
                    std::uint32_t side, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t difference = target[i] - scale(Fmixk::apply(source[i], low, high), side);
    const std::uint32_t wrapped = difference + side;
    target[i] = wrapped < difference ? wrapped : difference;
  }
}

}  // namespace

bool PENSTOCK_JOIN(forward, PENSTOCK_FORM)(const KernelInput& input, const std::uint64_t* in, std::uint64_t* out,
                                           std::size_t count) {
  Halves halves;
  split(input, in, halves, count);
  for (unsigned i = 0; i < kKernelRounds; i += 2) {
    add_round(halves.l, halves.r, input.low[i], input.high[i], input.a, count);
    add_round(halves.r, halves.l, input.low[i + 1], input.high[i + 1], input.b, count);
  }
  return join(input, halves, out, count);
}

bool PENSTOCK_JOIN(inverse, PENSTOCK_FORM)(const KernelInput& input, const std::uint64_t* in, std::uint64_t* out,
                                           std::size_t count) {
  Halves halves;
  split(input, in, halves, count);
  for (unsigned i = kKernelRounds; i > 0; i -= 2) {
    subtract_round(halves.r, halves.l, input.low[i - 1], input.high[i - 1], input.b, count);
    subtract_round(halves.l, halves.r, input.low[i - 2], input.high[i - 2], input.a, count);
  }
  return join(input, halves, out, count);
}

}  // namespace penstock::shuffle
