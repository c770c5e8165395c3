// Condition: what a text such as "score > 0.8 and lang = 'en'" means, before any dataset is known.
//
// The grammar is a part of SQL's:
//
//   condition  = conjunction { "or" conjunction }
//   conjunction = negation { "and" negation }
//   negation   = "not" negation | predicate
//   predicate  = operand [ sign operand | ["not"] "in" "(" literal { "," literal } ")" | "is" ["not"] "null" ]
//   operand    = name | literal | "(" condition ")"
//   sign       = "=" | "==" | "<>" | "!=" | "<" | "<=" | ">" | ">="
//   literal    = ["-" | "+"] number | 'text' | "true" | "false" | "null"
//   name       = letters, digits and _, not a digit first | "any text"
//
// Keywords are of any case, names are not; a quote inside of quotes is doubled. Truth has three values, as in SQL: a
// comparison with null is unknown, and so is what `and`, `or` and `not` cannot tell of it. A document is chosen where
// the condition is true. So a condition is kept without `not`: the comparisons below it are turned round, which in
// SQL's logic is the same, and then unknown and false need no difference. Values; any thread.
#pragma once

#include "layout/where/number.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace penstock::layout {

/// A condition's text has at most so many bytes, since states hold it …
inline constexpr std::size_t kMostConditionBytes = std::size_t{1} << 20;
/// … and parentheses are at most so deep.
inline constexpr unsigned kMostConditionDepth = 100;

struct NullLiteral {
  bool operator==(const NullLiteral&) const = default;
};
struct Literal {
  std::variant<NullLiteral, bool, Number, std::string> value;
  std::size_t at = 0;  // the byte of the text where it stands
};

struct ColumnName {
  std::string name;
  std::size_t at = 0;
};

struct Condition {
  enum class Kind : std::uint8_t {
    And,      // all of `parts`
    Or,       // one of `parts`
    Compare,  // column <comparison> literals[0]
    Columns,  // column <comparison> other
    In,       // column [not] in literals, of which there are at least two
    IsNull,   // column is [not] null
    Column,   // [not] column, a boolean
    Constant  // literals[0]: true, false or null
  };
  Kind kind = Kind::Constant;
  bool is_negated = false;  // of In, IsNull and Column
  Comparison comparison = Comparison::Equal;
  ColumnName column = {};
  ColumnName other = {};
  std::vector<Literal> literals = {};
  std::vector<Condition> parts = {};
};

/// The number of the character at byte `at`, from 1 on.
std::uint64_t character_number(std::string_view text, std::size_t at);
/// Where something stands in a condition, for messages: `condition "score > 0,8", character 10`.
std::string place_in(std::string_view text, std::size_t at);

/// Throws InvalidArgument, which says what stands where and what would be right: no condition, one of more than
/// kMostConditionBytes, text that is no UTF-8, or what the grammar has not.
Condition parse_condition(std::string_view text);

/// The condition's text: equal for those that differ in blanks, parentheses, the case of keywords, the order of what
/// `and` and `or` join and of lists, ways to write a number, sides of a comparison, and where a `not` stands. Parsing
/// it gives the same text.
std::string condition_text(const Condition& condition);
/// A name as a condition has it, in quotes where it needs them.
std::string name_text(std::string_view name);
/// A literal likewise.
std::string literal_text(const Literal& literal);

}  // namespace penstock::layout
