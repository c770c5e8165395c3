#include "layout/where/value_tests.h"

#include "core/rows/cast.h"
#include "layout/reading/reads.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace penstock::layout {
namespace {

using Bits = std::span<std::uint64_t>;

constexpr std::uint64_t kChunk = 4096;  // values that are converted at once

// Bytes that are 0 or 1, as bits.
std::uint64_t packed(const std::array<std::uint8_t, 64>& flags) noexcept {
  std::uint64_t word = 0;
  for (unsigned i = 0; i < 8; ++i) {
    std::uint64_t eight = 0;
    std::memcpy(&eight, flags.data() + std::size_t{8} * i, sizeof(eight));
    word |= (eight * 0x0102040810204080U >> 56) << (8 * i);  // byte j goes to bit 56 + j
  }
  return word;
}

// Bits of test(i), for i below count.
template <typename TestAt>
void fill_bits(std::uint64_t count, Bits bits, const TestAt& test) {
  std::uint64_t at = 0;
  std::array<std::uint8_t, 64> flags{};
  for (; at + 64 <= count; at += 64) {
    for (unsigned i = 0; i < 64; ++i) flags[i] = test(at + i) ? 1 : 0;
    bits[at / 64] = packed(flags);
  }
  if (at == count) return;
  std::uint64_t word = 0;
  for (unsigned i = 0; at + i < count; ++i) word |= static_cast<std::uint64_t>(test(at + i) ? 1 : 0) << i;
  bits[at / 64] = word;
}

void fill_all(std::uint64_t count, Bits bits, bool value) {
  fill_bits(count, bits, [=](std::uint64_t) { return value; });
}

template <typename T>
bool is_nan(T value) {
  if constexpr (std::is_floating_point_v<T>) return value != value;
  return false;
}

template <typename T>
void compare(const std::byte* values, std::uint64_t count, const Test<T>& test, Bits bits) {
  if (test.kind == Test<T>::Kind::Never) return fill_all(count, bits, false);
  if (test.kind == Test<T>::Kind::Always) {
    return fill_bits(count, bits, [=](std::uint64_t i) { return !is_nan(load_at<T>(values, i)); });
  }
  const T value = test.value;
  const auto at = [=](std::uint64_t i) { return load_at<T>(values, i); };
  switch (test.comparison) {
    case Comparison::Equal: return fill_bits(count, bits, [=](std::uint64_t i) { return at(i) == value; });
    case Comparison::Unequal:
      return fill_bits(count, bits, [=](std::uint64_t i) {
        return (static_cast<unsigned>(at(i) < value) | static_cast<unsigned>(at(i) > value)) != 0;
      });
    case Comparison::Less: return fill_bits(count, bits, [=](std::uint64_t i) { return at(i) < value; });
    case Comparison::LessEqual: return fill_bits(count, bits, [=](std::uint64_t i) { return at(i) <= value; });
    case Comparison::Greater: return fill_bits(count, bits, [=](std::uint64_t i) { return at(i) > value; });
    default: return fill_bits(count, bits, [=](std::uint64_t i) { return at(i) >= value; });
  }
}

// Values of another type, some at a time: each(first, converted, count).
template <typename To, typename Each>
void converted(ScalarType type, const std::byte* values, std::uint64_t count, const Each& each) {
  constexpr char kKind = std::is_floating_point_v<To> ? 'f' : std::is_signed_v<To> ? 'i' : 'u';
  const Leaf leaf{"", type.kind, type.bytes, 0, {}, {}};
  std::array<To, kChunk> chunk;
  for (std::uint64_t first = 0; first < count; first += kChunk) {
    const std::uint64_t part = std::min(kChunk, count - first);
    cast_leaf(leaf, values + first * type.bytes, type.bytes, part, {kKind, sizeof(To)},
              reinterpret_cast<std::byte*>(chunk.data()));
    each(first, chunk.data(), part);
  }
}

// Calls use(T{}) for the type in which values of `type` are compared: their own, float32 of float16.
template <typename Use>
ValueTest by_type(ScalarType type, const Use& use) {
  if (type.kind == 'f') return type.bytes == 8 ? use(double{}) : use(float{});
  if (type.kind == 'i') {
    switch (type.bytes) {
      case 1: return use(std::int8_t{});
      case 2: return use(std::int16_t{});
      case 4: return use(std::int32_t{});
      default: return use(std::int64_t{});
    }
  }
  switch (type.bytes) {
    case 1: return use(std::uint8_t{});
    case 2: return use(std::uint16_t{});
    case 4: return use(std::uint32_t{});
    default: return use(std::uint64_t{});
  }
}

// A test of values as they are stored, of one of float32.
ValueTest of_stored(ScalarType type, ValueTest test) {
  if (type.kind != 'f' || type.bytes != 2) return test;
  return [type, test = std::move(test)](const std::byte* values, std::uint64_t count, Bits bits) {
    converted<float>(type, values, count, [&](std::uint64_t first, const float* chunk, std::uint64_t part) {
      test(reinterpret_cast<const std::byte*>(chunk), part, bits.subspan(first / 64));
    });
  };
}

template <typename T>
ValueTest one_of(const std::vector<Number>& numbers, bool is_negated) {
  std::vector<T> wanted;
  for (const Number& each : numbers) {
    const Test<T> test = test_of<T>(Comparison::Equal, each);
    if (test.kind == Test<T>::Kind::Compare) wanted.push_back(test.value);
  }
  std::sort(wanted.begin(), wanted.end());
  return [wanted = std::move(wanted), is_negated](const std::byte* values, std::uint64_t count, Bits bits) {
    fill_bits(count, bits, [&](std::uint64_t i) {
      const T value = load_at<T>(values, i);
      return !is_nan(value) && std::binary_search(wanted.begin(), wanted.end(), value) != is_negated;
    });
  };
}

template <typename A, typename B>
bool holds_of(Comparison what, A a, B b) {
  if (is_nan(a) || is_nan(b)) return false;
  if constexpr (std::is_same_v<A, B>) {
    return holds(what, (a > b) - (a < b));
  } else if constexpr (std::is_floating_point_v<B>) {
    return holds(what, order_of(Wide{a}, b));
  } else if constexpr (std::is_floating_point_v<A>) {
    return holds(what, -order_of(Wide{b}, a));
  } else {
    return holds(what, std::cmp_less(a, b) ? -1 : std::cmp_equal(a, b) ? 0 : 1);
  }
}

template <typename A, typename B>
PairTest pairs(ScalarType type, Comparison what, ScalarType other) {
  return [=](const std::byte* values, const std::byte* others, std::uint64_t count, Bits bits) {
    converted<A>(type, values, count, [&](std::uint64_t first, const A* left, std::uint64_t part) {
      converted<B>(other, others + first * other.bytes, part, [&](std::uint64_t, const B* right, std::uint64_t) {
        fill_bits(part, bits.subspan(first / 64), [=](std::uint64_t i) { return holds_of(what, left[i], right[i]); });
      });
    });
  };
}

template <typename A>
PairTest pairs_with(ScalarType type, Comparison what, ScalarType other) {
  switch (other.kind) {
    case 'f': return pairs<A, double>(type, what, other);
    case 'i': return pairs<A, std::int64_t>(type, what, other);
    default: return pairs<A, std::uint64_t>(type, what, other);
  }
}

template <typename Code>
void codes_as_bits(const std::byte* codes, std::uint64_t count, std::span<const std::uint8_t> truths, Bits bits) {
  std::uint64_t most = 0;  // as unsigned numbers, codes below -1 are large
  const auto last = static_cast<std::uint64_t>(truths.size()) - 1;
  fill_bits(count, bits, [&](std::uint64_t i) {
    const auto number = static_cast<std::uint64_t>(std::int64_t{load_at<Code>(codes, i)} + 1);
    most = std::max(most, number);
    return truths[std::min(number, last)] != 0;
  });
  if (most > last) throw std::out_of_range("a code without a category");
}

}  // namespace

ValueTest compare_with(ScalarType type, Comparison what, const Number& number) {
  return of_stored(type, by_type(type, [&](auto value) -> ValueTest {
                     using T = decltype(value);
                     return [test = test_of<T>(what, number)](const std::byte* values, std::uint64_t count, Bits bits) {
                       compare<T>(values, count, test, bits);
                     };
                   }));
}

ValueTest is_one_of(ScalarType type, const std::vector<Number>& numbers, bool is_negated) {
  return of_stored(type, by_type(type, [&](auto value) { return one_of<decltype(value)>(numbers, is_negated); }));
}

ValueTest is_null(ScalarType type, bool is_negated) {
  if (type.kind != 'f') {
    return [=](const std::byte*, std::uint64_t count, Bits bits) { fill_all(count, bits, is_negated); };
  }
  return of_stored(type, by_type(type, [&](auto value) -> ValueTest {
                     using T = decltype(value);
                     return [=](const std::byte* values, std::uint64_t count, Bits bits) {
                       fill_bits(count, bits,
                                 [=](std::uint64_t i) { return is_nan(load_at<T>(values, i)) != is_negated; });
                     };
                   }));
}

ValueTest is_true(bool is_negated) {
  return [=](const std::byte* values, std::uint64_t count, Bits bits) {
    fill_bits(count, bits, [=](std::uint64_t i) { return (values[i] != std::byte{0}) != is_negated; });
  };
}

PairTest compare_pairs(ScalarType type, Comparison what, ScalarType other) {
  switch (type.kind) {
    case 'f': return pairs_with<double>(type, what, other);
    case 'i': return pairs_with<std::int64_t>(type, what, other);
    default: return pairs_with<std::uint64_t>(type, what, other);
  }
}

void test_codes(const std::byte* codes, std::uint32_t bytes, std::uint64_t count, std::span<const std::uint8_t> truths,
                std::span<std::uint64_t> bits) {
  switch (bytes) {
    case 1: return codes_as_bits<std::int8_t>(codes, count, truths, bits);
    case 2: return codes_as_bits<std::int16_t>(codes, count, truths, bits);
    default: return codes_as_bits<std::int32_t>(codes, count, truths, bits);
  }
}

}  // namespace penstock::layout
