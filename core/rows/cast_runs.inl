// Runs of casts, compiled in several forms from one source; see cast_runs.h. PENSTOCK_CAST_FORM names the form's
// function. All else has internal linkage: the forms must not share code, since not every processor runs all of them.
#include "core/rows/cast_runs.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

namespace penstock {
namespace {

// ---- runs: `count` scalars that lie `stride` bytes apart, written densely. False if a value does not fit.

struct Half {  // IEEE 754 binary16, as stored; gcc 12 and clang 14 share no type for it
  std::uint16_t bits;
};
struct Flag {  // NumPy's bool; any byte but 0 is true
  std::uint8_t byte;
};

float widen(Half half) {
  const std::uint32_t sign = (half.bits & 0x8000U) << 16;
  const std::uint32_t exponent = (half.bits >> 10) & 0x1FU;
  const std::uint32_t fraction = half.bits & 0x3FFU;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
    return sign != 0 ? -magnitude : magnitude;
  }
  const std::uint32_t wide = exponent == 31 ? 0xFFU : exponent + 112;
  return std::bit_cast<float>(sign | (wide << 23) | (fraction << 13));
}

template <typename To, typename From>
To convert(From value) {
  if constexpr (std::is_same_v<From, Half>) {
    return static_cast<To>(widen(value));
  } else if constexpr (std::is_same_v<From, Flag>) {
    return static_cast<To>(value.byte != 0);
  } else {
    return static_cast<To>(value);
  }
}

template <typename From, typename To>
constexpr bool kAlwaysFits = true;
template <typename From, typename To>
requires(std::is_integral_v<From>&& std::is_integral_v<To>) constexpr bool kAlwaysFits<From, To> =
    std::in_range<To>(std::numeric_limits<From>::min()) && std::in_range<To>(std::numeric_limits<From>::max());

/// The bits in which `value` leaves zero (or minus one, where `To` has a sign too): all values fit if the union of
/// their bits is at most the largest value, which is 2^k - 1. So the check is one OR a value and the loop stays a
/// vector loop.
template <typename To, typename From>
auto used_bits(From value) {
  using Bits = std::make_unsigned_t<From>;
  if constexpr (std::is_signed_v<From> && std::is_signed_v<To>) {
    return static_cast<Bits>(value ^ (value >> (sizeof(From) * 8 - 1)));
  } else {
    return static_cast<Bits>(value);
  }
}

/// `kStride` 0: given at run time. Loads and stores through memcpy: neither side need be aligned.
template <typename From, typename To, std::uint64_t kStride>
bool convert_run(const std::byte* __restrict in, std::uint64_t stride, std::uint64_t count, std::byte* __restrict out) {
  const std::uint64_t step = kStride != 0 ? kStride : stride;
  if constexpr (kAlwaysFits<From, To>) {
    for (std::uint64_t i = 0; i < count; ++i) {
      From value;
      std::memcpy(&value, in + i * step, sizeof value);
      const To converted = convert<To>(value);
      std::memcpy(out + i * sizeof converted, &converted, sizeof converted);
    }
    return true;
  } else {
    std::make_unsigned_t<From> seen = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      From value;
      std::memcpy(&value, in + i * step, sizeof value);
      seen = static_cast<decltype(seen)>(seen | used_bits<To>(value));
      const To converted = static_cast<To>(value);
      std::memcpy(out + i * sizeof converted, &converted, sizeof converted);
    }
    const std::uint64_t largest = std::min(static_cast<std::uint64_t>(std::numeric_limits<From>::max()),
                                           static_cast<std::uint64_t>(std::numeric_limits<To>::max()));
    return seen <= largest;
  }
}

// Dense runs go in pieces of at most 1 KiB: compilers see a memcpy in a copying loop, and above 2 KiB glibc's uses
// `rep movsb`, which Zen slows down 20 times at some alignments.
constexpr std::uint64_t kPieceBytes = 1024;

template <typename From, typename To>
bool run_as(const std::byte* in, std::uint64_t stride, std::uint64_t count, std::byte* out, std::uint64_t) {
  if (stride != sizeof(From)) return convert_run<From, To, 0>(in, stride, count, out);
  constexpr std::uint64_t kPiece = kPieceBytes / sizeof(To);
  bool fits = true;
  for (std::uint64_t at = 0; at < count; at += kPiece) {
    fits &= convert_run<From, To, sizeof(From)>(in + at * sizeof(From), stride, std::min(kPiece, count - at),
                                                out + at * sizeof(To));
  }
  return fits;
}

template <std::uint64_t kBytes>
void copy_strided(const std::byte* in, std::uint64_t stride, std::uint64_t count, std::byte* out) {
  for (std::uint64_t i = 0; i < count; ++i) std::memcpy(out + i * kBytes, in + i * stride, kBytes);
}

bool copy_run(const std::byte* in, std::uint64_t stride, std::uint64_t count, std::byte* out,
              std::uint64_t item_bytes) {
  if (stride == item_bytes) {
    const std::uint64_t bytes = count * item_bytes;
    for (std::uint64_t at = 0; at < bytes; at += kPieceBytes)
      std::memcpy(out + at, in + at, std::min(kPieceBytes, bytes - at));
    return true;
  }
  switch (item_bytes) {
    case 1: copy_strided<1>(in, stride, count, out); break;
    case 2: copy_strided<2>(in, stride, count, out); break;
    case 4: copy_strided<4>(in, stride, count, out); break;
    case 8: copy_strided<8>(in, stride, count, out); break;
    default:
      for (std::uint64_t i = 0; i < count; ++i) std::memcpy(out + i * item_bytes, in + i * stride, item_bytes);
  }
  return true;
}

// ---- which run makes `to` of `from`; null: none. The one table of permitted casts.

template <typename From>
CastRun run_to_float(ScalarType to) {
  if (to.kind != 'f') return nullptr;
  return to.bytes == 4 ? &run_as<From, float> : to.bytes == 8 ? &run_as<From, double> : nullptr;
}

template <typename From>
CastRun run_from(ScalarType to) {
  if (to.kind == 'f') return run_to_float<From>(to);
  if (to.kind != 'i' && to.kind != 'u') return nullptr;
  const bool is_signed = to.kind == 'i';
  switch (to.bytes) {
    case 1: return is_signed ? &run_as<From, std::int8_t> : &run_as<From, std::uint8_t>;
    case 2: return is_signed ? &run_as<From, std::int16_t> : &run_as<From, std::uint16_t>;
    case 4: return is_signed ? &run_as<From, std::int32_t> : &run_as<From, std::uint32_t>;
    case 8: return is_signed ? &run_as<From, std::int64_t> : &run_as<From, std::uint64_t>;
    default: return nullptr;
  }
}

}  // namespace

CastRun PENSTOCK_CAST_FORM(ScalarType from, ScalarType to) {
  if (from == to) return &copy_run;
  switch (from.kind) {
    case 'b': return run_from<Flag>(to);
    case 'u':
      switch (from.bytes) {
        case 1: return run_from<std::uint8_t>(to);
        case 2: return run_from<std::uint16_t>(to);
        case 4: return run_from<std::uint32_t>(to);
        default: return run_from<std::uint64_t>(to);
      }
    case 'i':
      switch (from.bytes) {
        case 1: return run_from<std::int8_t>(to);
        case 2: return run_from<std::int16_t>(to);
        case 4: return run_from<std::int32_t>(to);
        default: return run_from<std::int64_t>(to);
      }
    case 'f':
      switch (from.bytes) {
        case 2: return run_to_float<Half>(to);
        case 4: return run_to_float<float>(to);
        default: return run_to_float<double>(to);
      }
    default: return nullptr;
  }
}

}  // namespace penstock
