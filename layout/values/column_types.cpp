#include "layout/values/column_types.h"

#include "core/base/align.h"
#include "core/base/checked.h"
#include "core/base/json.h"
#include "core/rows/schema.h"
#include "layout/dataset/format.h"

#include <nlohmann/json.hpp>

#include <set>
#include <unordered_set>
#include <utility>

namespace penstock::layout {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxTypesBytes = 1U << 20;
constexpr std::size_t kMaxNameBytes = 255;
constexpr std::size_t kMaxCategoryBytes = 64U << 10;
constexpr const char* kCategory = "category";

template <typename... Arguments>
[[noreturn]] void refuse(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  raise(ErrorKind::InvalidArgument, format, std::forward<Arguments>(arguments)...);
}

// Types and shapes are those of fields, which have more names that cannot be. As text: a thread of the engine may have
// no memory for another JSON value to go (JsonGuard).
Leaf leaf_of(const std::string& name, const json& column) {
  const std::string shape = column.size() == 3 ? "," + column[2].dump() : "";
  try {
    return Schema::parse(fmt::format(R"([["value",{}{}]])", column[1].dump(), shape)).leaves().at(0);
  } catch (const Error& error) {
    refuse("column {}: {}", excerpt(name), error.what());
  }
}

ValueType parse_column(const json& column) {
  if (!column.is_array() || column.size() < 2 || column.size() > 3 || !column[0].is_string() ||
      !column[1].is_string()) {
    refuse("column {}, expected [name, type] or [name, type, shape]", excerpt(column.dump()));
  }
  ValueType value;
  value.name = column[0].get<std::string>();
  if (value.name.empty() || value.name.size() > kMaxNameBytes || value.name.find('\0') != std::string::npos) {
    refuse("a column called \"{}\": names have 1 to {} bytes and no NUL", excerpt(value.name), kMaxNameBytes);
  }
  value.is_category = column[1].get_ref<const std::string&>() == kCategory;
  if (value.is_category) {
    if (column.size() == 3) refuse("column {}: a category has no shape", excerpt(value.name));
    value.type = {'i', 4};
    return value;
  }
  const Leaf leaf = leaf_of(value.name, column);
  value.type = {leaf.kind, leaf.item_bytes};
  value.dims = leaf.dims;
  if (std::string_view("biuf").find(leaf.kind) == std::string_view::npos) {
    refuse("column {}: type {}, expected booleans, integers, floats or \"category\"", excerpt(value.name),
           value.type.str());
  }
  return value;
}

}  // namespace

ValueTypes parse_column_types(std::string_view text) {
  json columns;
  const JsonGuard guard(columns);
  try {
    columns = parse_json_strict(text, "columns", kMaxTypesBytes);
  } catch (const Error& error) {
    refuse("{}", error.what());
  }
  if (!columns.is_array() || columns.empty()) refuse("columns {}, expected a list of them", excerpt(columns.dump()));
  ValueTypes types;
  std::set<std::string> names;
  for (const json& column : columns) {
    types.push_back(parse_column(column));
    const std::string& name = types.back().name;
    if (!names.insert(name).second) refuse("two columns named \"{}\"", excerpt(name));
  }
  return types;
}

std::string column_types_json(const ValueTypes& types) {
  json columns = json::array();
  for (const ValueType& value : types) {
    json column = json::array({value.name, value.is_category ? kCategory : value.type.str()});
    if (!value.dims.empty()) column.push_back(value.dims);
    columns.push_back(std::move(column));
  }
  return columns.dump();
}

std::uint32_t code_bytes(std::uint64_t categories) noexcept {
  if (categories <= std::uint64_t{1} << 7) return 1;
  return categories <= std::uint64_t{1} << 15 ? 2 : 4;
}

void check_categories(std::string_view column, const Categories& categories) {
  std::unordered_set<std::string_view> names;
  for (const std::string& name : categories) {
    if (name.size() >= kMaxCategoryBytes) refuse("column {}: a category of {} bytes", excerpt(column), name.size());
    if (!names.insert(name).second)
      refuse("column {}: the category \"{}\" is there twice", excerpt(column), excerpt(name));
  }
}

std::uint64_t category_json_bytes(std::string_view name) noexcept {
  std::uint64_t bytes = 3;
  for (const char each : name)
    bytes += each == '"' || each == '\\' ? 2 : static_cast<unsigned char>(each) < ' ' ? 6 : 1;
  return bytes;
}

void check_categories_room(std::string_view column, std::uint64_t bytes) {
  if (bytes <= kMaxCategoriesBytes) return;
  refuse("column {}: the names of all categories have {} bytes, there is room for {}: keep such texts as metadata",
         excerpt(column), with_commas(bytes), with_commas(kMaxCategoriesBytes));
}

void check_categories(const ValueTypes& types, const std::vector<Categories>& categories) {
  std::uint64_t bytes = 0;
  for (std::size_t c = 0; c < types.size(); ++c) {
    if (!types[c].is_category) continue;
    check_categories(types[c].name, categories.at(c));
    for (const std::string& name : categories[c]) bytes += category_json_bytes(name);
    check_categories_room(types[c].name, bytes);
  }
}

std::vector<ColumnPlace> column_places(const ValueTypes& types, const ShardColumns& shard, std::uint64_t entries) {
  std::vector<ColumnPlace> places;
  places.reserve(types.size() + 1);
  std::uint64_t end = 0;
  for (std::size_t c = 0; c < types.size(); ++c) {
    const std::uint64_t offset = align_up(end, kColumnAlignment);
    const std::uint64_t bytes = types[c].is_category ? code_bytes(shard.categories[c]->size()) : types[c].bytes();
    end = checked_add(offset, checked_mul(entries, bytes, kColumnsName), kColumnsName);
    if (end > INT64_MAX - kColumnAlignment)
      raise(ErrorKind::Corruption, "{}: its size is beyond 63 bits", kColumnsName);
    places.push_back({offset, bytes});
  }
  places.push_back({end, 0});
  return places;
}

}  // namespace penstock::layout
