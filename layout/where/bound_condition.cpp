#include "layout/where/bound_condition.h"

#include "core/base/error.h"
#include "layout/dataset/format.h"
#include "layout/values/dataset_columns.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <optional>
#include <utility>

namespace penstock::layout {
namespace {

using Kind = Condition::Kind;

std::string folded(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// Characters that make one name of another: inserted, left out, exchanged.
std::size_t distance_of(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = std::exchange(row[j + 1], std::min({row[j + 1] + 1, row[j] + 1, changed}));
    }
  }
  return row.back();
}

std::optional<std::string> nearest_name(const ValueTypes& columns, const std::string& name) {
  std::optional<std::string> nearest;
  std::size_t least = std::max<std::size_t>(1, name.size() / 3) + 1;
  for (const ValueType& each : columns) {
    const std::size_t distance = distance_of(folded(each.name), folded(name));
    if (distance >= least) continue;
    least = distance;
    nearest = each.name;
  }
  return nearest;
}

std::string names_of(const ValueTypes& columns) {
  constexpr std::size_t kMostNames = 12;
  std::string names;
  for (std::size_t i = 0; i < std::min(columns.size(), kMostNames); ++i) {
    names += (i == 0 ? "" : ", ") + excerpt(name_text(columns[i].name));
  }
  if (columns.size() > kMostNames) names += fmt::format(" and {} more", with_commas(columns.size() - kMostNames));
  return names;
}

// "score is float32"
std::string described(const ValueType& type) {
  return excerpt(name_text(type.name)) + (type.is_category ? " is a category, of texts" : " is " + type.type.name());
}

std::string_view kind_of(const Literal& literal) {
  if (std::holds_alternative<bool>(literal.value)) return "a boolean";
  return std::holds_alternative<Number>(literal.value) ? "a number" : "a text";
}

class Binder {
 public:
  Binder(const Dataset& dataset, std::string_view text) : dataset_(dataset), text_(text) {}

  BoundCondition bind(const Condition& condition) const {
    BoundCondition bound;
    bound.kind = condition.kind;
    switch (condition.kind) {
      case Kind::And:
      case Kind::Or:
        for (const Condition& part : condition.parts) bound.parts.push_back(bind(part));
        return bound;
      case Kind::Constant: {
        const auto* const flag = std::get_if<bool>(&condition.literals[0].value);
        bound.is_always = flag != nullptr && *flag;
        return bound;
      }
      default: break;
    }
    bound.column = find(condition.column, condition.other.name);
    const ValueType& type = dataset_.columns[bound.column];
    switch (condition.kind) {
      case Kind::Compare: compare(condition, type, bound); break;
      case Kind::Columns: columns(condition, type, bound); break;
      case Kind::In: list(condition, type, bound); break;
      case Kind::IsNull: null(condition, type, bound); break;
      default: flag(condition, type, bound);
    }
    return bound;
  }

 private:
  template <typename... Arguments>
  [[noreturn]] void refuse(std::size_t at, fmt::format_string<Arguments...> format, Arguments&&... arguments) const {
    raise(ErrorKind::InvalidArgument, "{}: {}", place_in(text_, at),
          fmt::format(format, std::forward<Arguments>(arguments)...));
  }

  [[nodiscard]] auto look_for(const std::string& name) const {
    const ValueTypes& columns = dataset_.columns;
    return std::find_if(columns.begin(), columns.end(), [&](const ValueType& each) { return each.name == name; });
  }

  // `beside`: the column that it is compared with; "" where it is none.
  [[nodiscard]] std::size_t find(const ColumnName& column, const std::string& beside) const {
    const ValueTypes& columns = dataset_.columns;
    const auto found = look_for(column.name);
    if (found == columns.end()) {
      const auto other = look_for(beside);
      refuse_name(column, other != columns.end() && other->is_category);
    }
    if (!found->dims.empty()) {
      refuse(column.at, "{} has an array for each document, conditions are of single values",
             excerpt(name_text(column.name)));
    }
    return static_cast<std::size_t>(found - columns.begin());
  }

  [[noreturn]] void refuse_name(const ColumnName& column, bool may_be_text) const {
    const std::optional<std::string> nearest = nearest_name(dataset_.columns, column.name);
    refuse(column.at, "no column {}{}{}; there are {}{}", excerpt(name_text(column.name)),
           nearest ? ": is " + excerpt(name_text(*nearest)) + " meant?" : "",
           may_be_text ? fmt::format("; a text stands in single quotes, '{}'", excerpt(column.name)) : "",
           names_of(dataset_.columns),
           has_entries(dataset_) ? "; a key of metadata becomes a column by `penstock annotate --from-metadata`" : "");
  }

  [[noreturn]] void refuse_types(const ValueType& type, const Literal& literal) const {
    std::string_view advice;
    if (type.type.kind == 'b') advice = ": it is a condition by itself, or not";
    if (type.is_category) advice = ": a text stands in single quotes";
    refuse(literal.at, "{}, and is compared with {}{}", described(type), kind_of(literal), advice);
  }

  template <typename IsTrue>
  void by_name(const BoundCondition& bound, Truths& truths, const IsTrue& is_true) const {
    for (const std::string& name : dataset_.column_table->categories(bound.column)) {
      truths.push_back(is_true(name) ? 1 : 0);
    }
  }

  void compare(const Condition& condition, const ValueType& type, BoundCondition& bound) const {
    const Literal& literal = condition.literals[0];
    if (std::holds_alternative<NullLiteral>(literal.value)) return;  // unknown
    if (type.is_category) {
      const auto* const text = std::get_if<std::string>(&literal.value);
      if (text == nullptr) refuse_types(type, literal);
      if (condition.comparison == Comparison::Equal || condition.comparison == Comparison::Unequal) {
        bound.texts = {*text};
      }
      auto truths = std::make_shared<Truths>(1, std::uint8_t{0});
      by_name(bound, *truths,
              [&](const std::string& name) { return holds(condition.comparison, order_of_texts(name, *text)); });
      bound.codes = std::move(truths);
      return;
    }
    const auto* const number = std::get_if<Number>(&literal.value);
    if (number == nullptr || type.type.kind == 'b') refuse_types(type, literal);
    bound.values = compare_with(type.type, condition.comparison, *number);
  }

  static int order_of_texts(const std::string& a, const std::string& b) { return a.compare(b); }

  void list(const Condition& condition, const ValueType& type, BoundCondition& bound) const {
    std::vector<Number> numbers;
    std::vector<std::string> texts;
    for (const Literal& each : condition.literals) {
      const auto* const number = std::get_if<Number>(&each.value);
      const auto* const text = std::get_if<std::string>(&each.value);
      const bool is_right = type.is_category        ? text != nullptr
                            : type.type.kind == 'b' ? std::holds_alternative<bool>(each.value)
                                                    : number != nullptr;
      if (!is_right) refuse_types(type, each);
      if (number != nullptr) numbers.push_back(*number);
      if (text != nullptr) texts.push_back(*text);
    }
    if (type.type.kind == 'b') {  // both, as there are at least two
      bound.is_always = !condition.is_negated;
    } else if (type.is_category) {
      std::sort(texts.begin(), texts.end());
      auto truths = std::make_shared<Truths>(1, std::uint8_t{0});
      by_name(bound, *truths, [&](const std::string& name) {
        return std::binary_search(texts.begin(), texts.end(), name) != condition.is_negated;
      });
      bound.codes = std::move(truths);
      bound.texts = std::move(texts);
    } else {
      bound.values = is_one_of(type.type, numbers, condition.is_negated);
    }
  }

  void null(const Condition& condition, const ValueType& type, BoundCondition& bound) const {
    if (!type.is_category) {
      bound.values = is_null(type.type, condition.is_negated);
      return;
    }
    auto truths = std::make_shared<Truths>(1, condition.is_negated ? std::uint8_t{0} : std::uint8_t{1});
    by_name(bound, *truths, [&](const std::string&) { return condition.is_negated; });
    bound.codes = std::move(truths);
  }

  void flag(const Condition& condition, const ValueType& type, BoundCondition& bound) const {
    if (type.type.kind != 'b' || type.is_category) {
      refuse(condition.column.at, "{}, which is true or false only where it is compared: write {}", described(type),
             type.is_category ? "= 'text'" : "<> 0");
    }
    bound.values = is_true(condition.is_negated);
  }

  void columns(const Condition& condition, const ValueType& type, BoundCondition& bound) const {
    bound.other = find(condition.other, condition.column.name);
    const ValueType& other = dataset_.columns[bound.other];
    const bool are_flags = type.type.kind == 'b' && other.type.kind == 'b';
    const bool agree = type.is_category == other.is_category && (type.type.kind == 'b') == (other.type.kind == 'b');
    const bool is_first = condition.column.at < condition.other.at;
    const std::size_t second = is_first ? condition.other.at : condition.column.at;
    if (!agree) {
      refuse(second, "{}, and {}: they do not compare", described(is_first ? type : other),
             described(is_first ? other : type));
    }
    if (are_flags && condition.comparison != Comparison::Equal && condition.comparison != Comparison::Unequal) {
      refuse(second, "booleans are equal or not, none is less than another");
    }
    if (!type.is_category) {
      bound.pairs = compare_pairs(type.type, condition.comparison, other.type);
      return;
    }
    const Categories& left = dataset_.column_table->categories(bound.column);
    const Categories& right = dataset_.column_table->categories(bound.other);
    Categories all(left);
    all.insert(all.end(), right.begin(), right.end());
    std::sort(all.begin(), all.end());
    const auto ranks = [&](const Categories& names) {
      auto found = std::make_shared<Ranks>(1, 0);
      for (const std::string& name : names) {
        found->push_back(static_cast<std::int32_t>(std::lower_bound(all.begin(), all.end(), name) - all.begin()) + 1);
      }
      return found;
    };
    bound.ranks = ranks(left);
    bound.other_ranks = ranks(right);
    bound.comparison = condition.comparison;
  }

  const Dataset& dataset_;
  const std::string_view text_;
};

}  // namespace

bool has_entries(const Dataset& dataset) {
  return dataset.codec_json != "null" && dataset.codec_json != kBoundariesCodecJson;
}

BoundCondition bind_condition(const Dataset& dataset, const Condition& condition, std::string_view text) {
  return Binder(dataset, text).bind(condition);
}

}  // namespace penstock::layout
