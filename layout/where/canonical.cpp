#include "layout/where/canonical.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace penstock::layout {
namespace {

using Kind = Condition::Kind;

bool is_null(const Literal& literal) {
  return std::holds_alternative<NullLiteral>(literal.value);
}

// Numbers by what they are, all else by its text.
bool stands_before(const Literal& a, const Literal& b) {
  const auto* const x = std::get_if<Number>(&a.value);
  const auto* const y = std::get_if<Number>(&b.value);
  if (x == nullptr || y == nullptr) return literal_text(a) < literal_text(b);
  if (x->is_integer() && y->is_integer()) return x->integer() < y->integer();
  if (x->is_integer()) return order_of(x->integer(), y->real()) < 0;
  if (y->is_integer()) return order_of(y->integer(), x->real()) > 0;
  return x->real() < y->real();
}

bool is_same(const Literal& a, const Literal& b) {
  return literal_text(a) == literal_text(b);
}

Condition compared(Condition list, Literal literal) {
  if (const auto* const flag = std::get_if<bool>(&literal.value)) {
    list.kind = Kind::Column;
    list.is_negated = *flag == list.is_negated;
    list.literals.clear();
    return list;
  }
  list.kind = Kind::Compare;
  list.comparison = list.is_negated ? Comparison::Unequal : Comparison::Equal;
  list.is_negated = false;
  list.literals = {std::move(literal)};
  return list;
}

// `x in (1, null)` is true where x is 1, `x not in (1, null)` is never true.
Condition shortest_list(Condition list) {
  std::vector<Literal>& values = list.literals;
  const auto null = std::find_if(values.begin(), values.end(), is_null);
  if (null != values.end()) {
    if (list.is_negated) return compared(std::move(list), Literal(*null));
    const Literal kept = *null;
    values.erase(std::remove_if(values.begin(), values.end(), is_null), values.end());
    if (values.empty()) return compared(std::move(list), kept);
  }
  std::stable_sort(values.begin(), values.end(), stands_before);
  values.erase(std::unique(values.begin(), values.end(), is_same), values.end());
  if (values.size() > 1) return list;
  Literal only = values.front();
  return compared(std::move(list), std::move(only));
}

Condition joined(Condition condition) {
  std::vector<std::pair<std::string, Condition>> parts;
  const auto add = [&](Condition part) {
    std::string text = condition_text(part);
    parts.emplace_back(std::move(text), std::move(part));
  };
  for (Condition& each : condition.parts) {
    Condition part = canonical(std::move(each));
    if (part.kind != condition.kind) {
      add(std::move(part));
      continue;
    }
    for (Condition& inner : part.parts) add(std::move(inner));
  }
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  parts.erase(std::unique(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.first == b.first; }),
              parts.end());
  if (parts.size() == 1) return std::move(parts.front().second);
  condition.parts.clear();
  for (auto& [text, part] : parts) condition.parts.push_back(std::move(part));
  return condition;
}

}  // namespace

Condition negated(Condition condition) {
  switch (condition.kind) {
    case Kind::And:
    case Kind::Or:
      condition.kind = condition.kind == Kind::And ? Kind::Or : Kind::And;
      for (Condition& part : condition.parts) part = negated(std::move(part));
      break;
    case Kind::Compare:
    case Kind::Columns: condition.comparison = opposite(condition.comparison); break;
    case Kind::Constant:
      if (auto* const flag = std::get_if<bool>(&condition.literals[0].value)) *flag = !*flag;
      break;
    default: condition.is_negated = !condition.is_negated;
  }
  return condition;
}

Condition canonical(Condition condition) {
  switch (condition.kind) {
    case Kind::And:
    case Kind::Or: return joined(std::move(condition));
    case Kind::In: return shortest_list(std::move(condition));
    case Kind::Columns:
      if (condition.other.name < condition.column.name) {
        std::swap(condition.column, condition.other);
        condition.comparison = mirrored(condition.comparison);
      }
      return condition;
    default: return condition;
  }
}

}  // namespace penstock::layout
