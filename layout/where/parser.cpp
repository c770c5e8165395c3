// parse_condition(), name_text(): a parser by recursive descent.
#include "core/base/error.h"
#include "layout/where/canonical.h"
#include "layout/where/condition.h"
#include "layout/where/tokens.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <variant>

namespace penstock::layout {
namespace {

using Token = ConditionToken;
using Kind = Condition::Kind;

// A part of the text: a condition, or what may be a side of a comparison.
struct Term {
  std::variant<ColumnName, Literal, Condition> value;
  std::size_t at = 0;
};

struct Hint {
  std::string_view word;
  std::string_view advice;
};
constexpr std::array kHints{
    Hint{"between", "write a >= 1 and a <= 2"},
    Hint{"like", "text is compared whole: = 'text', or in ('a', 'b')"},
    Hint{"ilike", "text is compared whole: = 'text', or in ('a', 'b')"},
    Hint{"glob", "text is compared whole: = 'text', or in ('a', 'b')"},
    Hint{"isnull", "write is null"},
    Hint{"notnull", "write is not null"},
    Hint{"xor", "write (a and not b) or (b and not a)"},
    Hint{"(", "it has no functions; what is missing, NaN too, is null: write a is null"},
    Hint{"+", "it has no arithmetic: make a column of the sum by penstock.annotate"},
    Hint{"-", "it has no arithmetic: make a column of the difference by penstock.annotate"},
    Hint{"==", "one comparison has two sides: join two by and"},
    Hint{"=", "one comparison has two sides: join two by and"},
    Hint{"<", "one comparison has two sides: join two by and"},
    Hint{"<=", "one comparison has two sides: join two by and"},
    Hint{">", "one comparison has two sides: join two by and"},
    Hint{">=", "one comparison has two sides: join two by and"},
};

std::optional<Comparison> comparison_of(const Token& token) {
  if (token.kind != Token::Kind::Sign) return std::nullopt;
  if (token.text == "=" || token.text == "==") return Comparison::Equal;
  if (token.text == "<>" || token.text == "!=") return Comparison::Unequal;
  if (token.text == "<") return Comparison::Less;
  if (token.text == "<=") return Comparison::LessEqual;
  if (token.text == ">") return Comparison::Greater;
  if (token.text == ">=") return Comparison::GreaterEqual;
  return std::nullopt;
}

std::string_view kind_text(const Literal& literal) {
  constexpr std::array<std::string_view, 4> kKinds{"null", "a boolean", "a number", "a text"};
  return kKinds[literal.value.index()];
}

class Parser {
 public:
  explicit Parser(std::string_view text) : tokens_(text) {}

  Condition whole() {
    if (tokens_.now().kind == Token::Kind::End) {
      raise(ErrorKind::InvalidArgument, "an empty condition: one such as \"score > 0.8 and lang = 'en'\" is wanted");
    }
    Condition found = as_condition(disjunction());
    if (tokens_.now().kind != Token::Kind::End) refuse_more();
    return found;
  }

 private:
  template <typename... Arguments>
  [[noreturn]] void refuse(std::size_t at, fmt::format_string<Arguments...> format, Arguments&&... arguments) const {
    raise(ErrorKind::InvalidArgument, "{}: {}", place_in(tokens_.text(), at),
          fmt::format(format, std::forward<Arguments>(arguments)...));
  }

  // The token that is there, for messages.
  [[nodiscard]] std::string seen() const {
    return tokens_.now().kind == Token::Kind::End ? "the end" : "\"" + excerpt(tokens_.now().text) + "\"";
  }

  [[noreturn]] void refuse_more() const {
    const Token& token = tokens_.now();
    const std::string_view word = token.kind == Token::Kind::Word ? std::string_view(token.value) : token.text;
    const auto* const hint =
        std::find_if(kHints.begin(), kHints.end(), [&](const Hint& each) { return each.word == word; });
    if (hint != kHints.end()) refuse(token.at, "the grammar has no {} here: {}", seen(), hint->advice);
    refuse(token.at, "{} where the condition should end or go on by and, or{}", seen(),
           token.text == ")" ? ": no ( belongs to it" : "");
  }

  Condition as_condition(Term term) const {
    if (auto* const condition = std::get_if<Condition>(&term.value)) return std::move(*condition);
    Condition found;
    if (auto* const name = std::get_if<ColumnName>(&term.value)) {
      found.kind = Kind::Column;
      found.column = std::move(*name);
      return found;
    }
    auto& literal = std::get<Literal>(term.value);
    if (std::holds_alternative<Number>(literal.value) || std::holds_alternative<std::string>(literal.value)) {
      refuse(literal.at, "{} alone is no condition: compare a column with it", kind_text(literal));
    }
    found.literals.push_back(std::move(literal));
    return found;
  }

  Term joined(Kind kind, std::string_view word, Term (Parser::*part)()) {
    Term first = (this->*part)();
    if (!tokens_.is_word(word)) return first;
    Condition found;
    found.kind = kind;
    const std::size_t at = first.at;
    found.parts.push_back(as_condition(std::move(first)));
    while (tokens_.take_word(word)) found.parts.push_back(as_condition((this->*part)()));
    return {std::move(found), at};
  }

  Term disjunction() { return joined(Kind::Or, "or", &Parser::conjunction); }
  Term conjunction() { return joined(Kind::And, "and", &Parser::negation); }

  Term negation() {
    const std::size_t at = tokens_.now().at;
    bool is_negated = false;
    bool has_not = false;
    for (; tokens_.take_word("not"); is_negated = !is_negated) has_not = true;
    Term found = predicate();
    if (!has_not) return found;
    Condition condition = as_condition(std::move(found));
    return {is_negated ? negated(std::move(condition)) : std::move(condition), at};
  }

  Term predicate() {
    Term left = operand();
    const Token token = tokens_.now();
    if (const auto comparison = comparison_of(token)) {
      tokens_.next();
      return compared(std::move(left), *comparison, token.at, operand());
    }
    if (tokens_.is_word("not")) {
      tokens_.next();
      if (!tokens_.is_word("in")) {
        if (tokens_.now().kind == Token::Kind::Word && !is_keyword(tokens_.now().value)) refuse_more();
        refuse(tokens_.now().at, "{} after not: not in (…) is meant? Before a condition, not stands first", seen());
      }
      return list(std::move(left), true);
    }
    if (tokens_.is_word("in")) return list(std::move(left), false);
    if (tokens_.take_word("is")) return null(std::move(left), token.at);
    return left;
  }

  Term operand() {
    const Token token = tokens_.now();
    if (token.kind == Token::Kind::Sign && token.text == "(") {
      if (++depth_ > kMostConditionDepth) refuse(token.at, "more than {} parentheses deep", kMostConditionDepth);
      tokens_.next();
      Term found = disjunction();
      if (!tokens_.take_sign(")")) {
        if (tokens_.now().kind != Token::Kind::End && !tokens_.is_sign(",")) refuse_more();
        refuse(tokens_.now().at, "{} where a ) is wanted, for the ( at character {}", seen(),
               with_commas(character_number(tokens_.text(), token.at)));
      }
      --depth_;
      return found;
    }
    if (token.kind == Token::Kind::Name || (token.kind == Token::Kind::Word && !is_keyword(token.value))) {
      tokens_.next();
      const bool is_word = token.kind == Token::Kind::Word;
      return {ColumnName{is_word ? std::string(token.text) : token.value, token.at}, token.at};
    }
    return {literal("a name, a value or a ("), token.at};
  }

  Literal literal(std::string_view wanted) {
    const Token token = tokens_.now();
    const bool is_signed = tokens_.is_sign("-") || tokens_.is_sign("+");
    if (is_signed) tokens_.next();
    if (tokens_.now().kind == Token::Kind::Digits) {
      const std::optional<Number> number = Number::parse(tokens_.now().text);
      const std::optional<Number> given = number && token.text == "-" ? number->negative() : number;
      if (!given) {
        refuse(token.at, "{} is beyond 64 bits: integers are from -2^63 to 2^64 - 1, others finite doubles",
               excerpt(tokens_.now().text));
      }
      tokens_.next();
      return {*given, token.at};
    }
    if (is_signed) refuse(tokens_.now().at, "{} where a number is wanted, after a sign", seen());
    if (token.kind == Token::Kind::Text) {
      tokens_.next();
      return {token.value, token.at};
    }
    if (tokens_.take_word("null")) return {NullLiteral{}, token.at};
    if (tokens_.take_word("true")) return {true, token.at};
    if (tokens_.take_word("false")) return {false, token.at};
    refuse(token.at, "{} where {} is wanted{}", seen(), wanted,
           token.kind == Token::Kind::Word && !is_keyword(token.value) ? ": a text stands in single quotes" : "");
  }

  Term list(Term left, bool is_negated) {
    tokens_.next();
    auto* const name = std::get_if<ColumnName>(&left.value);
    if (name == nullptr) refuse(left.at, "in is of a column: its name is wanted before it");
    if (!tokens_.take_sign("(")) refuse(tokens_.now().at, "{} where a ( is wanted: in ('a', 'b')", seen());
    if (tokens_.is_sign(")")) refuse(tokens_.now().at, "an empty list, which has no value");
    Condition found;
    found.kind = Kind::In;
    found.is_negated = is_negated;
    found.column = std::move(*name);
    do {
      if (tokens_.now().kind == Token::Kind::Name) {
        refuse(tokens_.now().at, "\"{}\" is a name: a text stands in single quotes, '{}'", excerpt(tokens_.now().value),
               excerpt(tokens_.now().value));
      }
      found.literals.push_back(literal("a value"));
    } while (tokens_.take_sign(","));
    if (!tokens_.take_sign(")")) refuse(tokens_.now().at, "{} where a , or a ) is wanted", seen());
    return {std::move(found), left.at};
  }

  Term null(Term left, std::size_t at) {
    const bool is_negated = tokens_.take_word("not");
    if (!tokens_.take_word("null")) {
      refuse(tokens_.now().at, "{} after is: only is null and is not null are known", seen());
    }
    auto* const name = std::get_if<ColumnName>(&left.value);
    if (name == nullptr) refuse(at, "is null is of a column: its name is wanted before it");
    Condition found;
    found.kind = Kind::IsNull;
    found.is_negated = is_negated;
    found.column = std::move(*name);
    return {std::move(found), left.at};
  }

  // A column or a literal; `at` is where the sign stands.
  Term compared(Term left, Comparison what, std::size_t at, Term right) const {
    if (std::holds_alternative<Condition>(left.value) || std::holds_alternative<Condition>(right.value)) {
      refuse(at, "a condition is compared: columns and values are; of a comparison that is not to hold, write not (…)");
    }
    auto* const name = std::get_if<ColumnName>(&left.value);
    auto* const other = std::get_if<ColumnName>(&right.value);
    Condition found;
    found.comparison = what;
    if (name != nullptr && other != nullptr) {
      found.kind = Kind::Columns;
      found.column = std::move(*name);
      found.other = std::move(*other);
    } else if (name != nullptr) {
      found = with_literal(std::move(*name), what, at, std::move(std::get<Literal>(right.value)));
    } else if (other != nullptr) {
      found = with_literal(std::move(*other), mirrored(what), at, std::move(std::get<Literal>(left.value)));
    } else {
      found.literals.push_back(constant(std::get<Literal>(left.value), what, std::get<Literal>(right.value), at));
    }
    return {std::move(found), left.at};
  }

  void check_ordered(Comparison what, std::size_t at) const {
    if (what == Comparison::Equal || what == Comparison::Unequal) return;
    refuse(at, "booleans are equal or not, none is less than another");
  }

  Condition with_literal(ColumnName name, Comparison what, std::size_t at, Literal literal) const {
    Condition found;
    found.column = std::move(name);
    if (const auto* const flag = std::get_if<bool>(&literal.value)) {
      check_ordered(what, at);
      found.kind = Kind::Column;
      found.is_negated = *flag != (what == Comparison::Equal);
      return found;
    }
    found.kind = Kind::Compare;
    found.comparison = what;
    found.literals.push_back(std::move(literal));
    return found;
  }

  // The result of a comparison of two values.
  Literal constant(const Literal& left, Comparison what, const Literal& right, std::size_t at) const {
    if (std::holds_alternative<NullLiteral>(left.value) || std::holds_alternative<NullLiteral>(right.value)) {
      return {NullLiteral{}, left.at};
    }
    if (left.value.index() != right.value.index()) {
      refuse(at, "{} is compared with {}", kind_text(left), kind_text(right));
    }
    int order = 0;
    if (const auto* const number = std::get_if<Number>(&left.value)) {
      const auto& other = std::get<Number>(right.value);
      if (number->is_integer()) {
        order = other.is_integer() ? (number->integer() > other.integer()) - (number->integer() < other.integer())
                                   : order_of(number->integer(), other.real());
      } else {
        order = other.is_integer() ? -order_of(other.integer(), number->real())
                                   : (number->real() > other.real()) - (number->real() < other.real());
      }
    } else if (const auto* const text = std::get_if<std::string>(&left.value)) {
      order = text->compare(std::get<std::string>(right.value));
    } else {
      check_ordered(what, at);
      order = std::get<bool>(left.value) == std::get<bool>(right.value) ? 0 : 1;
    }
    return {holds(what, order), left.at};
  }

  ConditionTokens tokens_;
  unsigned depth_ = 0;
};

}  // namespace

std::string name_text(std::string_view name) {
  if (is_plain_name(name)) return std::string(name);
  std::string out(1, '"');
  for (const char c : name) out.append(c == '"' ? 2 : 1, c);
  return out + '"';
}

Condition parse_condition(std::string_view text) {
  if (text.size() > kMostConditionBytes) {
    raise(ErrorKind::InvalidArgument,
          "a condition of {} bytes: at most {}, since states hold it: make a column of what it says by "
          "penstock.annotate, or take view.select(mask)",
          with_commas(text.size()), with_commas(kMostConditionBytes));
  }
  return canonical(Parser(text).whole());
}

}  // namespace penstock::layout
