#include "core/columns.h"

#include "core/error.h"

#include <boost/container/small_vector.hpp>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <limits>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

namespace penstock {
namespace {

// ---- runs: `count` scalars that lie `stride` bytes apart, written densely. False if a value does not fit.

using Run = bool (*)(const std::byte* in, std::uint64_t stride, std::uint64_t count, std::byte* out,
                     std::uint64_t item_bytes);

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
Run run_to_float(ScalarType to) {
  if (to.kind != 'f') return nullptr;
  return to.bytes == 4 ? &run_as<From, float> : to.bytes == 8 ? &run_as<From, double> : nullptr;
}

template <typename From>
Run run_from(ScalarType to) {
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

Run find_run(ScalarType from, ScalarType to) {
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

// ---- axes: records, then the leaf's own; those that follow on one another in memory are one.

struct Axis {
  std::uint64_t count;
  std::uint64_t stride;
};
using Axes = boost::container::small_vector<Axis, 4>;

void append_axis(Axes& axes, Axis axis) {
  if (axis.count == 1 && !axes.empty()) return;
  if (!axes.empty() && (axes.back().count == 1 || axes.back().stride == axis.count * axis.stride)) {
    axes.back() = {axes.back().count * axis.count, axis.stride};
  } else {
    axes.push_back(axis);
  }
}

/// Calls `visit(in, stride, count)` for every run of the innermost axis, in order; stops at false.
template <typename Visit>
bool for_each_run(std::span<const Axis> axes, const std::byte* in, const Visit& visit) {
  if (axes.size() == 1) return visit(in, axes[0].stride, axes[0].count);
  for (std::uint64_t i = 0; i < axes[0].count; ++i) {
    if (!for_each_run(axes.subspan(1), in + i * axes[0].stride, visit)) return false;
  }
  return true;
}

Axes axes_of(const Leaf& leaf, std::uint64_t stored_record_bytes, std::uint64_t count) {
  Axes axes;
  append_axis(axes, {count, stored_record_bytes});
  for (std::size_t i = 0; i < leaf.dims.size(); ++i) append_axis(axes, {leaf.dims[i], leaf.stride_bytes[i]});
  return axes;
}

// ---- words

std::string type_name(ScalarType type) {
  const std::uint32_t bits = type.bytes * 8;
  switch (type.kind) {
    case 'b': return "bool";
    case 'i': return fmt::format("int{}", bits);
    case 'u': return fmt::format("uint{}", bits);
    case 'f': return fmt::format("float{}", bits);
    case 'c': return fmt::format("complex{}", bits);
    default: return type.str();
  }
}

/// An integer of any stored type, wide enough for all of them.
struct Wide {
  bool negative;
  std::uint64_t magnitude;
};

Wide load_integer(const Leaf& leaf, const std::byte* at) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, at, leaf.item_bytes);
  const unsigned unused = 64 - 8 * leaf.item_bytes;
  if (leaf.kind == 'i' && (bits >> (8 * leaf.item_bytes - 1)) != 0) {
    bits |= unused == 0 ? 0 : ~std::uint64_t{0} << (64 - unused);
    return {true, ~bits + 1};
  }
  return {false, bits};
}

bool fits(Wide value, ScalarType to) {
  const unsigned bits = 8 * to.bytes;
  if (to.kind == 'u') return !value.negative && (bits == 64 || value.magnitude >> bits == 0);
  const std::uint64_t limit = std::uint64_t{1} << (bits - 1);
  return value.negative ? value.magnitude <= limit : value.magnitude < limit;
}

/// Finds the first value that does not fit and throws. Slow; only after a run said that there is one.
[[noreturn]] void refuse_value(const Leaf& leaf, const std::byte* records, std::uint64_t stored_record_bytes,
                               std::uint64_t count, ScalarType type) {
  for (std::uint64_t record = 0; record < count; ++record) {
    const Axes axes = axes_of(leaf, stored_record_bytes, 1);
    const std::byte* first = records + record * stored_record_bytes + leaf.offset_bytes;
    for_each_run(std::span<const Axis>(axes.data(), axes.size()), first,
                 [&](const std::byte* in, std::uint64_t stride, std::uint64_t items) {
                   for (std::uint64_t i = 0; i < items; ++i) {
                     const Wide value = load_integer(leaf, in + i * stride);
                     if (fits(value, type)) continue;
                     const bool fits_int64 = fits(value, {'i', 8});
                     raise(ErrorKind::InvalidArgument,
                           "field {}: value {}{} does not fit {} (record {} of its row); use dtype={{'{}': '{}'}}",
                           leaf.name, value.negative ? "-" : "", with_commas(value.magnitude), type_name(type),
                           with_commas(record), leaf.name, fits_int64 ? "int64" : "uint64");
                   }
                   return true;
                 });
  }
  raise(ErrorKind::InvalidArgument, "field {}: a value does not fit {}", leaf.name, type_name(type));
}

bool is_known(ScalarType type) {
  switch (type.kind) {
    case 'b': return type.bytes == 1;
    case 'i':
    case 'u': return type.bytes == 1 || type.bytes == 2 || type.bytes == 4 || type.bytes == 8;
    case 'f': return type.bytes == 2 || type.bytes == 4 || type.bytes == 8;
    case 'c': return type.bytes == 8 || type.bytes == 16;
    case 'S':
    case 'V': return type.bytes >= 1;
    default: return false;
  }
}

}  // namespace

std::string ScalarType::str() const {
  const bool has_order = bytes > 1 && kind != 'S' && kind != 'V';
  return fmt::format("{}{}{}", has_order ? '<' : '|', kind, bytes);
}

ScalarType ScalarType::parse(const std::string& text) {
  if (text == "bool") return {'b', 1};
  std::string_view rest = text;
  ScalarType type;
  std::uint32_t unit = 1;  // bytes that one of the number's units is; 0: bits
  for (const auto& [name, kind] :
       {std::pair<std::string_view, char>{"int", 'i'}, {"uint", 'u'}, {"float", 'f'}, {"complex", 'c'}}) {
    if (!rest.starts_with(name)) continue;
    type.kind = kind;
    rest.remove_prefix(name.size());
    unit = 0;
    break;
  }
  if (unit == 1) {
    if (!rest.empty() && (rest[0] == '<' || rest[0] == '|' || rest[0] == '=')) rest.remove_prefix(1);
    if (!rest.empty()) {
      type.kind = rest[0];
      rest.remove_prefix(1);
    }
  }
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), type.bytes);
  const bool whole = error == std::errc() && end == rest.data() + rest.size();
  if (unit == 0) type.bytes = type.bytes % 8 == 0 ? type.bytes / 8 : 0;
  if (!whole || !is_known(type)) {
    raise(ErrorKind::InvalidArgument,
          "dtype \"{}\": expected a little-endian scalar type such as int64, <u2 or float32", text);
  }
  return type;
}

void check_cast(const Leaf& from, ScalarType to) {
  const ScalarType stored{from.kind, from.item_bytes};
  if (find_run(stored, to) != nullptr) return;
  raise(ErrorKind::InvalidArgument, "field {}: {} cannot become {}", from.name, type_name(stored), type_name(to));
}

void cast_leaf(const Leaf& leaf, const std::byte* records, std::uint64_t stored_record_bytes, std::uint64_t count,
               ScalarType type, std::byte* out) {
  if (count == 0) return;
  const Run run = find_run({leaf.kind, leaf.item_bytes}, type);
  if (run == nullptr) check_cast(leaf, type);  // throws
  const Axes axes = axes_of(leaf, stored_record_bytes, count);
  const std::byte* first = records + leaf.offset_bytes;
  const bool fine = for_each_run(std::span<const Axis>(axes.data(), axes.size()), first,
                                 [&](const std::byte* in, std::uint64_t stride, std::uint64_t items) {
                                   const bool run_fits = run(in, stride, items, out, type.bytes);
                                   out += items * type.bytes;
                                   return run_fits;
                                 });
  if (!fine) refuse_value(leaf, records, stored_record_bytes, count, type);
}

}  // namespace penstock
