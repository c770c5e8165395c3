#include "layout/where/number.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>

namespace penstock::layout {
namespace {

constexpr Wide kLeastInteger = -(Wide{1} << 63);
constexpr Wide kMostInteger = (Wide{1} << 64) - 1;

template <typename T>
Test<T> same_for_all(bool is_true) {
  return {is_true ? Test<T>::Kind::Always : Test<T>::Kind::Never, Comparison::Equal, 0};
}

template <typename T>
Test<T> test_integers(Comparison what, Wide value) {
  const bool is_below = value < Wide{std::numeric_limits<T>::min()};
  if (is_below || value > Wide{std::numeric_limits<T>::max()}) return same_for_all<T>(holds(what, is_below ? 1 : -1));
  return {Test<T>::Kind::Compare, what, static_cast<T>(value)};
}

template <typename T>
Test<T> integer_test(Comparison what, const Number& number) {
  if (number.is_integer()) return test_integers<T>(what, number.integer());
  const double real = number.real();
  if (std::abs(real) >= 0x1p65) return same_for_all<T>(holds(what, real < 0 ? 1 : -1));
  const auto below = static_cast<Wide>(std::floor(real));
  if (static_cast<double>(below) == real) return test_integers<T>(what, below);
  switch (what) {
    case Comparison::Equal: return same_for_all<T>(false);
    case Comparison::Unequal: return same_for_all<T>(true);
    case Comparison::Less:
    case Comparison::LessEqual: return test_integers<T>(Comparison::LessEqual, below);
    default: return test_integers<T>(Comparison::GreaterEqual, below + 1);
  }
}

template <typename T>
Test<T> float_test(Comparison what, const Number& number) {
  constexpr double kMost = std::numeric_limits<T>::max();
  const T near =
      number.is_integer() ? static_cast<T>(number.integer()) : static_cast<T>(std::clamp(number.real(), -kMost, kMost));
  // How the value of T that is near compares with the number.
  int order = 0;
  if (number.is_integer()) {
    order = -order_of(number.integer(), static_cast<double>(near));
  } else {
    const auto wide = static_cast<double>(near);
    order = wide < number.real() ? -1 : wide > number.real() ? 1 : 0;
  }
  if (order == 0) return {Test<T>::Kind::Compare, what, near};
  switch (what) {
    case Comparison::Equal: return same_for_all<T>(false);
    case Comparison::Unequal: return same_for_all<T>(true);
    // No value lies between `near` and the number.
    case Comparison::Less:
    case Comparison::LessEqual:
      return {Test<T>::Kind::Compare, order < 0 ? Comparison::LessEqual : Comparison::Less, near};
    default: return {Test<T>::Kind::Compare, order < 0 ? Comparison::Greater : Comparison::GreaterEqual, near};
  }
}

bool is_whole(std::string_view digits) {
  return std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// The digits of a number like 9007199254740993.0 or 1.5e3, which a double might round; "" where it is no integer of at
// most 20 digits.
std::string whole_digits(std::string_view digits) {
  constexpr std::int64_t kMostDigits = 20;
  const std::size_t mark = std::min(digits.find_first_of("eE"), digits.size());
  std::int64_t exponent = 0;
  if (mark < digits.size()) {
    const char* begin = digits.data() + mark + 1;
    if (begin < digits.data() + digits.size() && *begin == '+') ++begin;
    const auto [stop, failed] = std::from_chars(begin, digits.data() + digits.size(), exponent);
    if (failed != std::errc() || stop != digits.data() + digits.size()) return {};
  }
  std::string found(digits.substr(0, mark));
  if (const std::size_t point = found.find('.'); point != std::string::npos) {
    exponent -= static_cast<std::int64_t>(found.size() - point - 1);
    found.erase(point, 1);
  }
  if (!is_whole(found)) return {};
  found.erase(0, found.find_first_not_of('0'));
  if (found.empty()) return "0";
  for (; exponent < 0 && found.back() == '0'; ++exponent) found.pop_back();
  if (exponent < 0 || exponent > kMostDigits || found.size() + static_cast<std::size_t>(exponent) > kMostDigits)
    return {};
  return found.append(static_cast<std::size_t>(exponent), '0');
}

}  // namespace

Comparison opposite(Comparison what) noexcept {
  switch (what) {
    case Comparison::Equal: return Comparison::Unequal;
    case Comparison::Unequal: return Comparison::Equal;
    case Comparison::Less: return Comparison::GreaterEqual;
    case Comparison::LessEqual: return Comparison::Greater;
    case Comparison::Greater: return Comparison::LessEqual;
    default: return Comparison::Less;
  }
}

Comparison mirrored(Comparison what) noexcept {
  switch (what) {
    case Comparison::Less: return Comparison::Greater;
    case Comparison::LessEqual: return Comparison::GreaterEqual;
    case Comparison::Greater: return Comparison::Less;
    case Comparison::GreaterEqual: return Comparison::LessEqual;
    default: return what;
  }
}

std::string_view sign_of(Comparison what) noexcept {
  constexpr std::array<std::string_view, 6> kSigns{"=", "<>", "<", "<=", ">", ">="};
  return kSigns[static_cast<std::size_t>(what)];
}

std::optional<Number> Number::parse(std::string_view digits) {
  const char* const end = digits.data() + digits.size();
  if (is_whole(digits)) {
    std::uint64_t value = 0;
    const auto [stop, failed] = std::from_chars(digits.data(), end, value);
    if (failed != std::errc() || stop != end) return std::nullopt;
    return Number(Wide{value});
  }
  if (const std::string whole = whole_digits(digits); !whole.empty()) {
    if (const std::optional<Number> found = parse(whole)) return found;
  }
  double value = 0;
  const auto [stop, failed] = std::from_chars(digits.data(), end, value);
  if (failed == std::errc::result_out_of_range) {
    // Too small is 0, as of every reader of numbers; too large is none.
    const std::size_t exponent = digits.find_first_of("eE");
    const bool is_small = exponent != std::string_view::npos && digits.substr(exponent + 1, 1) == "-";
    return is_small && stop == end ? std::optional(Number(Wide{0})) : std::nullopt;
  }
  if (failed != std::errc() || stop != end || !std::isfinite(value)) return std::nullopt;
  return Number(value);
}

Number::Number(double real) noexcept : is_integer_(false), real_(real) {
  if (real != std::floor(real) || real < -0x1p63 || real >= 0x1p64) return;
  is_integer_ = true;
  integer_ = static_cast<Wide>(real);
}

std::optional<Number> Number::negative() const noexcept {
  if (!is_integer_) return Number(-real_);
  if (-integer_ < kLeastInteger || -integer_ > kMostInteger) return std::nullopt;
  return Number(-integer_);
}

std::string Number::text() const {
  std::array<char, 32> out{};
  char* const begin = out.data();
  char* end = begin;
  if (!is_integer_) {
    end = std::to_chars(begin, begin + out.size(), real_).ptr;
    const std::string text(begin, end);  // 2^64 is not to be read as an integer
    return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
  }
  if (integer_ < 0) {
    end = std::to_chars(begin, begin + out.size(), static_cast<std::int64_t>(integer_)).ptr;
  } else {
    end = std::to_chars(begin, begin + out.size(), static_cast<std::uint64_t>(integer_)).ptr;
  }
  return {begin, end};
}

template <typename T>
Test<T> test_of(Comparison what, const Number& number) {
  if constexpr (std::is_floating_point_v<T>) {
    return float_test<T>(what, number);
  } else {
    return integer_test<T>(what, number);
  }
}

template Test<std::int8_t> test_of(Comparison, const Number&);
template Test<std::int16_t> test_of(Comparison, const Number&);
template Test<std::int32_t> test_of(Comparison, const Number&);
template Test<std::int64_t> test_of(Comparison, const Number&);
template Test<std::uint8_t> test_of(Comparison, const Number&);
template Test<std::uint16_t> test_of(Comparison, const Number&);
template Test<std::uint32_t> test_of(Comparison, const Number&);
template Test<std::uint64_t> test_of(Comparison, const Number&);
template Test<float> test_of(Comparison, const Number&);
template Test<double> test_of(Comparison, const Number&);

int order_of(Wide integer, double real) noexcept {
  if (real >= 0x1p65) return -1;
  if (real <= -0x1p65) return 1;
  const double whole = std::trunc(real);
  const auto other = static_cast<Wide>(whole);
  if (integer != other) return integer < other ? -1 : 1;
  return whole < real ? -1 : whole > real ? 1 : 0;
}

}  // namespace penstock::layout
