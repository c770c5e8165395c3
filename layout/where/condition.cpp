#include "layout/where/condition.h"

#include "core/base/error.h"

#include <algorithm>
#include <utility>

namespace penstock::layout {
namespace {

using Kind = Condition::Kind;

bool begins_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
}

std::string in_quotes(std::string_view text, char quote) {
  std::string out(1, quote);
  for (const char c : text) out.append(c == quote ? 2 : 1, c);
  return out + quote;
}

std::string list_text(const std::vector<Literal>& literals) {
  std::string out;
  for (const Literal& each : literals) {
    if (!out.empty()) out += ", ";
    out += literal_text(each);
  }
  return out;
}

std::string joined_text(const Condition& condition) {
  std::string out;
  for (const Condition& part : condition.parts) {
    if (!out.empty()) out += condition.kind == Kind::And ? " and " : " or ";
    const bool is_compound = part.kind == Kind::And || part.kind == Kind::Or;
    out += is_compound ? "(" + condition_text(part) + ")" : condition_text(part);
  }
  return out;
}

}  // namespace

std::uint64_t character_number(std::string_view text, std::size_t at) {
  const auto end = text.begin() + static_cast<std::ptrdiff_t>(at);
  return 1 + static_cast<std::uint64_t>(std::count_if(text.begin(), end, begins_character));
}

std::string place_in(std::string_view text, std::size_t at) {
  constexpr std::size_t kShown = 30;  // on each side of the place
  std::size_t begin = text.size() <= 2 * kShown || at < kShown ? 0 : at - kShown;
  std::size_t end = text.size() <= 2 * kShown ? text.size() : std::min(text.size(), at + kShown);
  while (begin > 0 && !begins_character(text[begin])) --begin;
  while (end < text.size() && !begins_character(text[end])) ++end;
  return fmt::format("condition \"{}{}{}\", character {}", begin > 0 ? "…" : "",
                     excerpt(text.substr(begin, end - begin)), end < text.size() ? "…" : "",
                     with_commas(character_number(text, at)));
}

std::string literal_text(const Literal& literal) {
  if (const auto* const flag = std::get_if<bool>(&literal.value)) return *flag ? "true" : "false";
  if (const auto* const number = std::get_if<Number>(&literal.value)) return number->text();
  if (const auto* const text = std::get_if<std::string>(&literal.value)) return in_quotes(*text, '\'');
  return "null";
}

std::string condition_text(const Condition& condition) {
  const std::string column = name_text(condition.column.name);
  switch (condition.kind) {
    case Kind::And:
    case Kind::Or: return joined_text(condition);
    case Kind::Compare:
      return fmt::format("{} {} {}", column, sign_of(condition.comparison), literal_text(condition.literals[0]));
    case Kind::Columns:
      return fmt::format("{} {} {}", column, sign_of(condition.comparison), name_text(condition.other.name));
    case Kind::In:
      return fmt::format("{} {}in ({})", column, condition.is_negated ? "not " : "", list_text(condition.literals));
    case Kind::IsNull: return fmt::format("{} is {}null", column, condition.is_negated ? "not " : "");
    case Kind::Column: return condition.is_negated ? "not " + column : column;
    default: return literal_text(condition.literals[0]);
  }
}

}  // namespace penstock::layout
