// Comparisons equal those of exact numbers: a long double has all integers of 64 bits and all doubles.
#include "layout/where/value_tests.h"

#include "tests/native/message_of.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <stdexcept>
#include <type_traits>
#include <vector>

namespace penstock::layout {
namespace {

constexpr std::array kComparisons{Comparison::Equal,     Comparison::Unequal, Comparison::Less,
                                  Comparison::LessEqual, Comparison::Greater, Comparison::GreaterEqual};

template <typename T>
ScalarType type_of() {
  const char kind = std::is_floating_point_v<T> ? 'f' : std::is_signed_v<T> ? 'i' : 'u';
  return {kind, sizeof(T)};
}

template <typename T>
const std::byte* bytes_of(const std::vector<T>& values) {
  return reinterpret_cast<const std::byte*>(values.data());
}

bool exactly(Comparison what, long double a, long double b) {
  return !std::isnan(a) && !std::isnan(b) && holds(what, (a > b) - (a < b));
}

std::vector<Number> literals() {
  std::vector<Number> numbers;
  for (const char* text : {"0",
                           "1",
                           "127",
                           "128",
                           "255",
                           "256",
                           "32767",
                           "65535",
                           "65536",
                           "2147483647",
                           "2147483648",
                           "4294967295",
                           "16777217",
                           "9007199254740993",
                           "9223372036854775807",
                           "9223372036854775808",
                           "18446744073709551615",
                           "0.1",
                           "0.5",
                           "2.5",
                           "0.699999988079071",
                           "126.5",
                           "255.5",
                           "9007199254740992.0",
                           "1e19",
                           "1e20",
                           "3.4028235e38",
                           "3.5e38",
                           "1e300",
                           "5e-324",
                           "1e-46",
                           "65504",
                           "65519.5",
                           "1.7976931348623157e308"}) {
    const Number number = Number::parse(text).value();
    numbers.push_back(number);
    if (const auto negative = number.negative()) numbers.push_back(*negative);
  }
  return numbers;
}

long double exact(const Number& number) {
  return number.is_integer() ? static_cast<long double>(number.integer()) : static_cast<long double>(number.real());
}

template <typename T>
std::vector<T> values() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> found{0, 1, 2, 3, 126, 127, Limits::max(), Limits::lowest(), static_cast<T>(Limits::max() / 2)};
  for (const Number& each : literals()) {
    const long double value = exact(each);
    if (value < static_cast<long double>(Limits::lowest()) || value > static_cast<long double>(Limits::max())) continue;
    const T near = static_cast<T>(value);
    found.push_back(near);
    if constexpr (std::is_floating_point_v<T>) {
      found.push_back(std::nextafter(near, Limits::infinity()));
      found.push_back(std::nextafter(near, -Limits::infinity()));
    } else {
      if (near < Limits::max()) found.push_back(static_cast<T>(near + 1));
      if (near > Limits::lowest()) found.push_back(static_cast<T>(near - 1));
    }
  }
  if constexpr (std::is_floating_point_v<T>) {
    for (const T each : {Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity(), T(-0.0)}) found.push_back(each);
  }
  return found;
}

template <typename T, typename Is>
void expect_bits(const ValueTest& test, const std::vector<T>& all, const Is& is) {
  for (const std::size_t count : {all.size(), std::size_t{64}, std::size_t{3}, std::size_t{0}}) {
    std::vector<std::uint64_t> bits(count / 64 + 1, 0);
    test(bytes_of(all), count, bits);
    for (std::size_t i = 0; i < bits.size() * 64 && count > 0; ++i) {
      const bool bit = (bits[i / 64] >> i % 64 & 1) != 0;
      if (i >= (count + 63) / 64 * 64) break;
      ASSERT_EQ(bit, i < count && is(all[i])) << i << " of " << count << ": " << (i < count ? +all[i] : T());
    }
  }
}

template <typename T>
class EveryType : public ::testing::Test {};
using Types = ::testing::Types<std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t, std::uint16_t,
                               std::uint32_t, std::uint64_t, float, double>;
TYPED_TEST_SUITE(EveryType, Types);

TYPED_TEST(EveryType, ComparesWithNumbersExactly) {
  const std::vector<TypeParam> all = values<TypeParam>();
  ASSERT_GT(all.size(), 64U / 4);
  std::vector<TypeParam> padded = all;
  while (padded.size() < 70) padded.push_back(1);
  for (const Number& literal : literals()) {
    for (const Comparison what : kComparisons) {
      SCOPED_TRACE(std::string(sign_of(what)) + " " + literal.text());
      expect_bits(compare_with(type_of<TypeParam>(), what, literal), padded,
                  [&](TypeParam value) { return exactly(what, static_cast<long double>(value), exact(literal)); });
    }
  }
}

TYPED_TEST(EveryType, IsOneOfTheNumbersOrNoneAndNullOrNot) {
  std::vector<TypeParam> all = values<TypeParam>();
  while (all.size() < 70) all.push_back(1);
  const std::vector<Number> numbers = literals();
  const auto is_one = [&](TypeParam value) {
    return std::any_of(numbers.begin(), numbers.end(), [&](const Number& each) {
      return exactly(Comparison::Equal, static_cast<long double>(value), exact(each));
    });
  };
  const auto is_nothing = [](TypeParam value) { return std::isnan(static_cast<double>(value)); };
  expect_bits(is_one_of(type_of<TypeParam>(), numbers, false), all, is_one);
  expect_bits(is_one_of(type_of<TypeParam>(), numbers, true), all,
              [&](TypeParam value) { return !is_nothing(value) && !is_one(value); });
  expect_bits(is_null(type_of<TypeParam>(), false), all, is_nothing);
  expect_bits(is_null(type_of<TypeParam>(), true), all, [&](TypeParam value) { return !is_nothing(value); });
}

template <typename A, typename B>
void expect_pairs() {
  std::vector<A> left;
  std::vector<B> right;
  for (const A a : values<A>()) {
    for (const B b : values<B>()) {
      left.push_back(a);
      right.push_back(b);
    }
  }
  for (const Comparison what : kComparisons) {
    std::vector<std::uint64_t> bits((left.size() + 63) / 64);
    compare_pairs(type_of<A>(), what, type_of<B>())(bytes_of(left), bytes_of(right), left.size(), bits);
    for (std::size_t i = 0; i < left.size(); ++i) {
      ASSERT_EQ((bits[i / 64] >> i % 64 & 1) != 0,
                exactly(what, static_cast<long double>(left[i]), static_cast<long double>(right[i])))
          << +left[i] << sign_of(what) << +right[i];
    }
  }
}

TYPED_TEST(EveryType, ComparesWithValuesOfAnyOtherTypeExactly) {
  expect_pairs<TypeParam, std::int8_t>();
  expect_pairs<TypeParam, std::int64_t>();
  expect_pairs<TypeParam, std::uint64_t>();
  expect_pairs<TypeParam, std::uint16_t>();
  expect_pairs<TypeParam, float>();
  expect_pairs<TypeParam, double>();
}

TEST(ValueTests, Float16IsComparedAsTheNumberThatItIs) {
  const std::vector<std::uint16_t> halves{0x0000, 0x3C00, 0x3999, 0x7C00, 0x7E00, 0xFBFF, 0x0001};  // 0 1 0.7 inf nan
  const auto bits = [&](const ValueTest& test) {
    std::vector<std::uint64_t> found(1);
    test(bytes_of(halves), halves.size(), found);
    return found[0];
  };
  const ScalarType half{'f', 2};
  EXPECT_EQ(bits(compare_with(half, Comparison::Greater, Number(0.5))), 0b0001110U);
  EXPECT_EQ(bits(compare_with(half, Comparison::Less, Number(0.7))), 0b1100101U);  // 0x3999 is 0.69970703125
  EXPECT_EQ(bits(is_one_of(half, {Number(Wide{1}), Number(0.69970703125)}, false)), 0b0000110U);
  EXPECT_EQ(bits(is_null(half, false)), 0b0010000U);
}

TEST(ValueTests, FlagsAreAnyByteAndCodesHaveATruthEach) {
  const std::vector<std::uint8_t> flags{0, 1, 2, 255};
  std::vector<std::uint64_t> bits(1);
  is_true(false)(bytes_of(flags), 4, bits);
  EXPECT_EQ(bits[0], 0b1110U);
  is_true(true)(bytes_of(flags), 4, bits);
  EXPECT_EQ(bits[0], 0b0001U);
  compare_pairs({'b', 1}, Comparison::Equal, {'b', 1})(bytes_of(flags), bytes_of(std::vector<std::uint8_t>{0, 7, 0, 1}),
                                                       4, bits);
  EXPECT_EQ(bits[0], 0b1011U);
  const std::vector<std::uint8_t> truths{1, 0, 1};  // null, 0, 1
  const std::vector<std::int16_t> codes{-1, 0, 1, 1};
  test_codes(bytes_of(codes), 2, 4, truths, bits);
  EXPECT_EQ(bits[0], 0b1101U);
  for (const std::int8_t wrong : {std::int8_t{2}, std::int8_t{-2}, std::int8_t{-128}, std::int8_t{127}}) {
    EXPECT_THROW(test_codes(bytes_of(std::vector<std::int8_t>{0, wrong}), 1, 2, truths, bits), std::out_of_range);
  }
}

}  // namespace
}  // namespace penstock::layout
