#include "core/rows/schema.h"

#include "core/base/checked.h"
#include "core/base/json.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

namespace penstock {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMaxRecordBytes = 1U << 20;
constexpr std::size_t kMaxJsonBytes = 1U << 20;
constexpr std::size_t kMaxDims = 32;              // NumPy's own limit
constexpr std::size_t kMaxNameBytes = 16U << 20;  // of all leaves: the names of nested fields have those around them

// Names, types and shapes may be those of a file: excerpts of them are quoted.
template <typename... Arguments>
[[noreturn]] void refuse(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  raise(ErrorKind::InvalidArgument, format, std::forward<Arguments>(arguments)...);
}

bool known_size(char kind, std::uint64_t bytes) {
  switch (kind) {
    case 'b': return bytes == 1;
    case 'i':
    case 'u': return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
    case 'f': return bytes == 2 || bytes == 4 || bytes == 8;
    case 'c': return bytes == 8 || bytes == 16;
    default: return bytes >= 1 && bytes <= kMaxRecordBytes;  // S, V
  }
}

std::uint64_t parse_size(const std::string& field, const std::string& text) {
  std::uint64_t bytes = 0;
  for (const char digit : std::string_view(text).substr(2)) {
    if (digit < '0' || digit > '9' || bytes > kMaxRecordBytes || (bytes == 0 && digit == '0')) {
      refuse("field {}: type \"{}\" has no size from 1 byte to 1 MiB", excerpt(field), excerpt(text));
    }
    bytes = bytes * 10 + static_cast<std::uint64_t>(digit - '0');
  }
  return bytes;
}

// "<u4" -> kind and size. The byte order mark must be the one that NumPy itself writes, so that equal schemas have
// equal text: '|' where there is no order, '<' elsewhere.
void parse_type(const std::string& field, const std::string& text, Leaf& leaf) {
  if (text.size() < 3) refuse("field {}: type \"{}\", expected something like \"<u4\"", excerpt(field), excerpt(text));
  if (text[0] == '>')
    refuse("field {}: type \"{}\" is big-endian; penstock stores little-endian values", excerpt(field), excerpt(text));
  leaf.kind = text[1];
  if (std::string_view("biufcSV").find(leaf.kind) == std::string_view::npos) {
    refuse("field {}: type \"{}\" is of no kind that can be stored (b i u f c S V)", excerpt(field), excerpt(text));
  }
  const std::uint64_t bytes = parse_size(field, text);
  if (!known_size(leaf.kind, bytes))
    refuse("field {}: type \"{}\" has a size that cannot be stored", excerpt(field), excerpt(text));
  const bool no_order = bytes == 1 || leaf.kind == 'S' || leaf.kind == 'V';
  if (text[0] != (no_order ? '|' : '<')) {
    refuse("field {}: type \"{}\", expected \"{}{}\"", excerpt(field), excerpt(text), no_order ? '|' : '<',
           excerpt(text.substr(1)));
  }
  leaf.item_bytes = static_cast<std::uint32_t>(bytes);
}

std::vector<std::uint64_t> parse_shape(const std::string& field, const json& shape) {
  if (!shape.is_array() || shape.empty() || shape.size() > kMaxDims) {
    refuse("field {}: shape {}, expected a list of 1 to {} sizes", excerpt(field), excerpt(shape.dump()), kMaxDims);
  }
  std::vector<std::uint64_t> dims;
  for (const json& dim : shape) {
    if (!dim.is_number_unsigned() || dim == 0 || dim > kMaxRecordBytes) {
      refuse("field {}: shape {}, expected sizes from 1 to {}", excerpt(field), excerpt(shape.dump()), kMaxRecordBytes);
    }
    dims.push_back(dim.get<std::uint64_t>());
  }
  return dims;
}

// Puts the axes of a sub-array of `item_bytes` wide elements before the axes that the leaf has inside an element.
void repeat(Leaf& leaf, const std::vector<std::uint64_t>& dims, std::uint64_t item_bytes) {
  std::vector<std::uint64_t> strides(dims.size());
  std::uint64_t stride = item_bytes;
  for (std::size_t i = dims.size(); i-- > 0; stride *= dims[i]) strides[i] = stride;
  leaf.dims.insert(leaf.dims.begin(), dims.begin(), dims.end());
  leaf.stride_bytes.insert(leaf.stride_bytes.begin(), strides.begin(), strides.end());
  if (leaf.dims.size() > kMaxDims) refuse("field {}: more than {} axes", excerpt(leaf.name), kMaxDims);
}

struct Found {
  std::vector<Leaf>& leaves;
  std::size_t name_bytes = 0;
};

std::uint64_t add_fields(const std::string& prefix, const json& fields, std::uint64_t offset, Found& out);

// Appends the leaves of one [name, type, shape?] at `offset`; returns the bytes that the field takes.
std::uint64_t add_field(const std::string& prefix, const std::string& name, const json& field, std::uint64_t offset,
                        Found& out) {
  const std::string path = prefix + name;
  const std::size_t first = out.leaves.size();
  std::uint64_t item_bytes = 0;
  if (field[1].is_string()) {
    Leaf leaf;
    leaf.name = path;
    leaf.offset_bytes = offset;
    parse_type(path, field[1].get<std::string>(), leaf);
    item_bytes = leaf.item_bytes;
    out.name_bytes += path.size();
    if (out.name_bytes > kMaxNameBytes) refuse("field {}: the names of nested fields are too long", excerpt(path));
    out.leaves.push_back(std::move(leaf));
  } else {
    item_bytes = add_fields(path + ".", field[1], offset, out);
  }
  std::uint64_t bytes = item_bytes;
  if (field.size() == 3) {
    const std::vector<std::uint64_t> dims = parse_shape(path, field[2]);
    for (const std::uint64_t dim : dims) {
      bytes = checked_mul(bytes, dim, path.c_str(), ErrorKind::InvalidArgument);
      if (bytes > kMaxRecordBytes) refuse("field {}: more than 1 MiB a record", excerpt(path));
    }
    for (std::size_t i = first; i < out.leaves.size(); ++i) repeat(out.leaves[i], dims, item_bytes);
  }
  return bytes;
}

std::uint64_t add_fields(const std::string& prefix, const json& fields, std::uint64_t offset, Found& out) {
  const std::string what = prefix.empty() ? "the record" : "field " + excerpt(prefix.substr(0, prefix.size() - 1));
  if (!fields.is_array() || fields.empty())
    refuse("{}: fields {}, expected a list of fields", what, excerpt(fields.dump()));
  std::set<std::string> names;
  std::uint64_t bytes = 0;
  for (const json& field : fields) {
    if (!field.is_array() || field.size() < 2 || field.size() > 3 || !field[0].is_string()) {
      refuse("{}: field {}, expected [name, type] or [name, type, shape]", what, excerpt(field.dump()));
    }
    const auto name = field[0].get<std::string>();
    if (name.empty()) refuse("{}: a field without a name", what);
    if (name.find('.') != std::string::npos || name.find('\0') != std::string::npos) {
      refuse("{}: field name \"{}\" contains '.' or NUL; nested fields are named a.b by penstock itself", what,
             excerpt(name));
    }
    if (!names.insert(name).second) refuse("{}: two fields named \"{}\"", what, excerpt(name));
    bytes += add_field(prefix, name, field, offset + bytes, out);
    if (bytes > kMaxRecordBytes) refuse("{}: more than 1 MiB a record", what);
  }
  return bytes;
}

json parse_text(std::string_view text) {
  try {
    return parse_json_strict(text, "fields", kMaxJsonBytes);
  } catch (const Error& error) {
    raise(ErrorKind::InvalidArgument, "{}", error.what());
  }
}

}  // namespace

std::uint64_t Leaf::count() const noexcept {
  std::uint64_t product = 1;
  for (const std::uint64_t dim : dims) product *= dim;
  return product;
}

Schema Schema::parse(std::string_view text) {
  nlohmann::json fields = parse_text(text);
  const JsonGuard guard(fields);
  Schema schema;
  Found found{schema.leaves_};
  schema.record_bytes_ = add_fields("", fields, 0, found);
  schema.json_ = fields.dump();
  return schema;
}

int Schema::find(std::string_view name) const noexcept {
  const auto found = std::find_if(leaves_.begin(), leaves_.end(), [&](const Leaf& leaf) { return leaf.name == name; });
  return found == leaves_.end() ? -1 : static_cast<int>(found - leaves_.begin());
}

}  // namespace penstock
