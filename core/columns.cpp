#include "core/columns.h"

#include "core/error.h"

#include <array>
#include <charconv>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <utility>

namespace penstock {
namespace {

// NumPy's names for the types that a user may type out.
constexpr std::array<std::pair<std::string_view, ScalarType>, 14> kNames{{{"bool", {'b', 1}},
                                                                          {"int8", {'i', 1}},
                                                                          {"int16", {'i', 2}},
                                                                          {"int32", {'i', 4}},
                                                                          {"int64", {'i', 8}},
                                                                          {"uint8", {'u', 1}},
                                                                          {"uint16", {'u', 2}},
                                                                          {"uint32", {'u', 4}},
                                                                          {"uint64", {'u', 8}},
                                                                          {"float16", {'f', 2}},
                                                                          {"float32", {'f', 4}},
                                                                          {"float64", {'f', 8}},
                                                                          {"complex64", {'c', 8}},
                                                                          {"complex128", {'c', 16}}}};

bool is_integer(char kind) { return kind == 'i' || kind == 'u'; }

bool is_supported(ScalarType type) {
  const std::uint32_t n = type.bytes;
  switch (type.kind) {
    case 'b': return n == 1;
    case 'i':
    case 'u': return n == 1 || n == 2 || n == 4 || n == 8;
    case 'f': return n == 2 || n == 4 || n == 8;
    case 'c': return n == 8 || n == 16;
    case 'S':
    case 'V': return n > 0;
    default: return false;
  }
}

// IEEE 754 binary16, as stored.
struct Half {
  std::uint16_t bits;
  explicit operator float() const {
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
    const std::uint32_t magnitude = bits & 0x7fffU;
    if (magnitude >= 0x7c00U) return from_bits(sign | 0x7f800000U | (magnitude & 0x3ffU) << 13);  // infinity, NaN
    if (magnitude < 0x400U) {                                                                     // zero, subnormal
      const float value = static_cast<float>(magnitude) * 0x1p-24F;
      return sign != 0 ? -value : value;
    }
    return from_bits(sign | ((magnitude << 13) + (112U << 23)));
  }
  explicit operator double() const { return static_cast<double>(static_cast<float>(*this)); }

 private:
  static float from_bits(std::uint32_t bits) {
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
};

template <typename T>
T load(const std::byte* at) {  // any alignment: records are packed
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// A run of scalars `stride` bytes apart becomes a dense run of To. Returns whether each one fitted; when not, `out` holds
// rubbish. kStride: the stride where it is known when compiling, so that the loop can be vectorised; else 0.
template <typename From, typename To, std::uint64_t kStride>
bool cast_run(const std::byte* in, std::uint64_t stride, std::uint64_t count, std::byte* out) {
  const std::uint64_t step = kStride != 0 ? kStride : stride;
  bool fits = true;
  for (std::uint64_t i = 0; i < count; ++i) {
    const From value = load<From>(in + i * step);
    const To cast = static_cast<To>(value);
    if constexpr (std::is_integral_v<From> && std::is_integral_v<To>) fits &= std::in_range<To>(value);
    std::memcpy(out + i * sizeof(To), &cast, sizeof(To));
  }
  return fits;
}

using Run = bool (*)(const std::byte* in, std::uint64_t stride, std::uint64_t count, std::byte* out);

template <typename From, typename To>
Run choose_run(bool dense) {
  return dense ? &cast_run<From, To, sizeof(From)> : &cast_run<From, To, 0>;
}

// Calls function with the C++ type of a number. A bool is its byte.
template <typename Function>
Run with_type(ScalarType type, Function&& function) {
  switch (type.kind) {
    case 'b': return function(std::type_identity<std::uint8_t>{});
    case 'f':
      if (type.bytes == 2) return function(std::type_identity<Half>{});
      return type.bytes == 4 ? function(std::type_identity<float>{}) : function(std::type_identity<double>{});
    case 'i':
      if (type.bytes == 1) return function(std::type_identity<std::int8_t>{});
      if (type.bytes == 2) return function(std::type_identity<std::int16_t>{});
      return type.bytes == 4 ? function(std::type_identity<std::int32_t>{}) : function(std::type_identity<std::int64_t>{});
    default:
      if (type.bytes == 1) return function(std::type_identity<std::uint8_t>{});
      if (type.bytes == 2) return function(std::type_identity<std::uint16_t>{});
      return type.bytes == 4 ? function(std::type_identity<std::uint32_t>{})
                             : function(std::type_identity<std::uint64_t>{});
  }
}

// The loop for a conversion that check_cast allows and that is no plain copy.
Run find_run(ScalarType from, ScalarType to, bool dense) {
  return with_type(from, [&]<typename From>(std::type_identity<From>) {
    return with_type(to, [&]<typename To>(std::type_identity<To>) -> Run {
      if constexpr (std::is_same_v<To, Half> || (!std::is_integral_v<From> && std::is_integral_v<To>)) {
        return nullptr;  // refused by check_cast
      } else {
        return choose_run<From, To>(dense);
      }
    });
  });
}

void copy_run(const std::byte* in, std::uint64_t stride, std::uint64_t count, std::uint32_t bytes, std::byte* out) {
  if (stride == bytes) {
    std::memcpy(out, in, count * bytes);
    return;
  }
  for (std::uint64_t i = 0; i < count; ++i) std::memcpy(out + i * bytes, in + i * stride, bytes);
}

// Calls run(first, stride, count) for each run of scalars of `count` records, in the order of the dense array. All
// records are one run if the leaf is a scalar, or if nothing but it is in the record.
template <typename Function>
void for_each_run(const Leaf& leaf, const std::byte* records, std::uint64_t record_bytes, std::uint64_t count,
                  Function&& run) {
  const std::byte* first = records + leaf.offset_bytes;
  if (leaf.dims.empty()) return run(first, record_bytes, count);
  if (record_bytes == leaf.count() * leaf.item_bytes) return run(first, leaf.item_bytes, count * leaf.count());
  const std::size_t outer = leaf.dims.size() - 1;
  const std::uint64_t runs = leaf.dims[outer] == 0 ? 0 : leaf.count() / leaf.dims[outer];
  for (std::uint64_t record = 0; record < count; ++record) {
    for (std::uint64_t k = 0; k < runs; ++k) {
      const std::byte* begin = first + record * record_bytes;
      std::uint64_t rest = k;
      for (std::size_t axis = outer; axis-- > 0;) {
        begin += rest % leaf.dims[axis] * leaf.stride_bytes[axis];
        rest /= leaf.dims[axis];
      }
      run(begin, leaf.stride_bytes[outer], leaf.dims[outer]);
    }
  }
}

[[noreturn]] void raise_misfit(const Leaf& leaf, const std::byte* in, std::uint64_t stride, std::uint64_t count,
                               ScalarType to) {
  const Run one = find_run({leaf.kind, leaf.item_bytes}, to, false);
  std::array<std::byte, 16> scratch{};
  std::uint64_t i = 0;
  while (i + 1 < count && one(in + i * stride, stride, 1, scratch.data())) ++i;
  std::uint64_t bits = 0;
  std::memcpy(&bits, in + i * stride, leaf.item_bytes);
  const unsigned unused = 64 - 8 * leaf.item_bytes;
  const auto number = static_cast<std::int64_t>(bits << unused) >> unused;
  const std::string value = leaf.kind == 'i' && number < 0 ? std::to_string(number) : with_commas(bits);
  raise(ErrorKind::InvalidArgument, "field {}: the value {} does not fit {}: use dtype={{\"{}\": …}} with a larger type",
        leaf.name, value, to.str(), leaf.name);
}

}  // namespace

std::string ScalarType::str() const {
  const bool no_order = bytes == 1 || kind == 'S' || kind == 'V' || kind == 'b';
  return fmt::format("{}{}{}", no_order ? '|' : '<', kind, bytes);
}

ScalarType ScalarType::parse(const std::string& text) {
  for (const auto& [name, type] : kNames) {
    if (text == name) return type;
  }
  ScalarType type;
  const std::size_t at = !text.empty() && (text[0] == '<' || text[0] == '|' || text[0] == '=') ? 1 : 0;
  const char* end = text.data() + text.size();
  if (text.size() > at + 1) {
    type.kind = text[at];
    const auto [rest, error] = std::from_chars(text.data() + at + 1, end, type.bytes);
    if (error == std::errc() && rest == end && is_supported(type)) return type;
  }
  raise(ErrorKind::InvalidArgument, "\"{}\" is no type of a column: use one like \"int64\" or \"<i8\"", text);
}

void check_cast(const Leaf& from, ScalarType to) {
  const ScalarType own{from.kind, from.item_bytes};
  if (own == to) return;
  const bool from_number = is_integer(from.kind) || from.kind == 'b';
  const bool ok = is_supported(to) && ((from_number && is_integer(to.kind)) ||
                                       (from_number && to.kind == 'f' && to.bytes > 2) ||
                                       (from.kind == 'f' && to.kind == 'f' && to.bytes > 2));
  if (!ok) raise(ErrorKind::InvalidArgument, "field {}: {} cannot become {}", from.name, own.str(), to.str());
}

void cast_leaf(const Leaf& leaf, const std::byte* records, std::uint64_t stored_record_bytes, std::uint64_t count,
               ScalarType type, std::byte* out) {
  const ScalarType own{leaf.kind, leaf.item_bytes};
  const bool copies = own == type || (is_integer(own.kind) && own.kind == type.kind && own.bytes == type.bytes);
  for_each_run(leaf, records, stored_record_bytes, count,
               [&](const std::byte* first, std::uint64_t stride, std::uint64_t n) {
                 if (copies) {
                   copy_run(first, stride, n, type.bytes, out);
                 } else if (!find_run(own, type, stride == own.bytes)(first, stride, n, out)) {
                   raise_misfit(leaf, first, stride, n, type);
                 }
                 out += n * type.bytes;
               });
}

}  // namespace penstock
