#include "core/rows/scalar_type.h"

#include "core/base/error.h"

#include <charconv>
#include <string_view>
#include <system_error>
#include <utility>

namespace penstock {
namespace {

bool is_known(ScalarType type) {
  switch (type.kind) {
    case 'b': return type.bytes == 1;
    case 'i':
    case 'u': return type.bytes == 1 || type.bytes == 2 || type.bytes == 4 || type.bytes == 8;
    case 'f': return type.bytes == 2 || type.bytes == 4 || type.bytes == 8;
    case 'c': return type.bytes == 8 || type.bytes == 16;
    case 'S':
    case 'V': return type.bytes >= 1;
    default: return false;
  }
}

}  // namespace

std::string ScalarType::str() const {
  const bool has_order = bytes > 1 && kind != 'S' && kind != 'V';
  return fmt::format("{}{}{}", has_order ? '<' : '|', kind, bytes);
}

std::string ScalarType::name() const {
  const std::uint32_t bits = bytes * 8;
  switch (kind) {
    case 'b': return "bool";
    case 'i': return fmt::format("int{}", bits);
    case 'u': return fmt::format("uint{}", bits);
    case 'f': return fmt::format("float{}", bits);
    case 'c': return fmt::format("complex{}", bits);
    default: return str();
  }
}

ScalarType ScalarType::parse(const std::string& text) {
  if (text == "bool") return {'b', 1};
  std::string_view rest = text;
  ScalarType type;
  std::uint32_t unit = 1;  // bytes that one of the number's units is; 0: bits
  for (const auto& [name, kind] :
       {std::pair<std::string_view, char>{"int", 'i'}, {"uint", 'u'}, {"float", 'f'}, {"complex", 'c'}}) {
    if (!rest.starts_with(name)) continue;
    type.kind = kind;
    rest.remove_prefix(name.size());
    unit = 0;
    break;
  }
  if (unit == 1) {
    if (!rest.empty() && (rest[0] == '<' || rest[0] == '|' || rest[0] == '=')) rest.remove_prefix(1);
    if (!rest.empty()) {
      type.kind = rest[0];
      rest.remove_prefix(1);
    }
  }
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), type.bytes);
  const bool whole = error == std::errc() && end == rest.data() + rest.size();
  if (unit == 0) type.bytes = type.bytes % 8 == 0 ? type.bytes / 8 : 0;
  if (!whole || !is_known(type)) {
    raise(ErrorKind::InvalidArgument,
          "dtype \"{}\": expected a little-endian scalar type such as int64, <u2 or float32", text);
  }
  return type;
}

}  // namespace penstock
