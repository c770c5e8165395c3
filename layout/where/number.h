// Number: a number in a condition, and what comparing values of a type with it comes to, exactly.
//
// Nothing is rounded but fractions beyond 2^53, to the nearest double: 2^53 + 1 is less than no double but the next
// one, 0.1 is the double of this name, which no float32 equals. Values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace penstock::layout {

__extension__ using Wide = __int128;

enum class Comparison : std::uint8_t { Equal, Unequal, Less, LessEqual, Greater, GreaterEqual };

/// The comparison that is true where this one is false, of values that are not null.
Comparison opposite(Comparison what) noexcept;
/// The same with its sides changed.
Comparison mirrored(Comparison what) noexcept;
/// "=", "<>", "<", "<=", ">", ">=".
std::string_view sign_of(Comparison what) noexcept;

/// An integer from -2^63 to 2^64 - 1, or a double that is no such integer.
class Number {
 public:
  /// The number of digits without sign, "12", "0.5", "1e-3"; nullopt for text that is no number, integers from 2^64 on
  /// and doubles beyond the largest one.
  static std::optional<Number> parse(std::string_view digits);
  explicit Number(Wide integer) noexcept : integer_(integer) {}
  explicit Number(double real) noexcept;

  /// With the other sign; nullopt where that is below -2^63.
  [[nodiscard]] std::optional<Number> negative() const noexcept;
  [[nodiscard]] bool is_integer() const noexcept { return is_integer_; }
  [[nodiscard]] Wide integer() const noexcept { return integer_; }
  [[nodiscard]] double real() const noexcept { return real_; }
  /// Decimal digits; of a double the fewest that tell it.
  [[nodiscard]] std::string text() const;

 private:
  bool is_integer_ = true;
  Wide integer_ = 0;
  double real_ = 0;
};

/// A comparison of values of type T with a number: one with a value of T, or the same for all that are not null.
template <typename T>
struct Test {
  enum class Kind : std::uint8_t { Compare, Always, Never };
  Kind kind = Kind::Compare;
  Comparison comparison = Comparison::Equal;
  T value = 0;
};

/// `value <what> number`, of values of T: an integer, float or double.
template <typename T>
Test<T> test_of(Comparison what, const Number& number);

/// How two numbers compare: -1, 0, 1.
int order_of(Wide integer, double real) noexcept;  // the double is not NaN

/// `what`, where the left side is less (order -1), equal (0) or greater (1).
constexpr bool holds(Comparison what, int order) noexcept {
  switch (what) {
    case Comparison::Equal: return order == 0;
    case Comparison::Unequal: return order != 0;
    case Comparison::Less: return order < 0;
    case Comparison::LessEqual: return order <= 0;
    case Comparison::Greater: return order > 0;
    default: return order >= 0;
  }
}

}  // namespace penstock::layout
