#include "text/json_values.h"

#include <cstdint>
#include <string_view>

namespace penstock::text {
namespace {

using simdjson::dom::element;
using simdjson::dom::element_type;

// simdjson's sizes stop at this one.
constexpr std::size_t kManyItems = 0xffffff;

template <typename Container>
std::uint64_t count_of(const Container& items) {
  if (items.size() < kManyItems) return items.size();
  std::uint64_t count = 0;
  for (auto at = items.begin(); at != items.end(); ++at) ++count;
  return count;
}

void put_json_array(ByteVector& out, simdjson::dom::array items) {
  out.push_back('[');
  bool is_first = true;
  for (const element item : items) {
    if (!is_first) out.push_back(',');
    is_first = false;
    put_json_value(out, item);
  }
  out.push_back(']');
}

void put_json_object(ByteVector& out, simdjson::dom::object fields) {
  out.push_back('{');
  bool is_first = true;
  for (const auto& [key, value] : fields) {
    if (!is_first) out.push_back(',');
    is_first = false;
    put_json_string(out, key);
    out.push_back(':');
    put_json_value(out, value);
  }
  out.push_back('}');
}

}  // namespace

void put_json_value(ByteVector& out, element value) {
  switch (value.type()) {
    case element_type::ARRAY: put_json_array(out, known_as<simdjson::dom::array>(value)); break;
    case element_type::OBJECT: put_json_object(out, known_as<simdjson::dom::object>(value)); break;
    case element_type::INT64: put_integer(out, known_as<std::int64_t>(value)); break;
    case element_type::UINT64: put_integer(out, known_as<std::uint64_t>(value)); break;
    case element_type::DOUBLE: put_float(out, known_as<double>(value)); break;
    case element_type::STRING: put_json_string(out, known_as<std::string_view>(value)); break;
    case element_type::BOOL: put_bytes(out, known_as<bool>(value) ? "true" : "false"); break;
    case element_type::NULL_VALUE: put_bytes(out, "null"); break;
  }
}

void put_packed_value(ByteVector& out, element value) {
  switch (value.type()) {
    case element_type::ARRAY: {
      const auto items = known_as<simdjson::dom::array>(value);
      put_packed_array_head(out, count_of(items));
      for (const element item : items) put_packed_value(out, item);
      break;
    }
    case element_type::OBJECT: {
      const auto fields = known_as<simdjson::dom::object>(value);
      put_packed_map_head(out, count_of(fields));
      for (const auto& [key, item] : fields) {
        put_packed(out, key);
        put_packed_value(out, item);
      }
      break;
    }
    case element_type::INT64: put_packed(out, known_as<std::int64_t>(value)); break;
    case element_type::UINT64: put_packed(out, known_as<std::uint64_t>(value)); break;
    case element_type::DOUBLE: put_packed(out, known_as<double>(value)); break;
    case element_type::STRING: put_packed(out, known_as<std::string_view>(value)); break;
    case element_type::BOOL: out.push_back(known_as<bool>(value) ? 0xc3 : 0xc2); break;
    case element_type::NULL_VALUE: out.push_back(0xc0); break;
  }
}

}  // namespace penstock::text
