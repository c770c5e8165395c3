#include "text/rows.h"

#include "core/base/checked.h"
#include "core/base/error.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace penstock::text {
namespace {

template <typename T>
T number_at(std::string_view bytes, std::uint64_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}

bool bit_at(std::string_view bits, std::uint64_t i) {
  return (static_cast<unsigned char>(bits[i >> 3]) >> (i & 7) & 1) != 0;
}

void require(std::string_view buffer, std::uint64_t bytes, const ArrowColumn& column, const char* what) {
  if (buffer.size() < bytes) {
    raise(ErrorKind::InvalidArgument, "column \"{}\": {} of {} bytes, wanted {}", excerpt(column.name), what,
          buffer.size(), bytes);
  }
}

bool is_text(const ArrowColumn& column) {
  return column.kind == ArrowKind::Utf8 || column.kind == ArrowKind::LargeUtf8;
}

bool has_itemsize(const ArrowColumn& column) {
  const std::uint64_t size = column.itemsize;
  if (column.kind == ArrowKind::Float) return size == 4 || size == 8;
  return size == 1 || size == 2 || size == 4 || size == 8;
}

std::uint64_t text_offset(const ArrowColumn& column, std::uint64_t i) {
  // A negative one lies beyond all data.
  if (column.kind == ArrowKind::LargeUtf8) return number_at<std::uint64_t>(column.offsets, i);
  return static_cast<std::uint64_t>(std::int64_t{number_at<std::int32_t>(column.offsets, i)});
}

void check_offsets(const ArrowColumn& column, std::uint64_t begin, std::uint64_t end) {
  std::uint64_t last = text_offset(column, begin);
  for (std::uint64_t i = begin + 1; i <= end; ++i) {
    const std::uint64_t next = text_offset(column, i);
    if (next < last) raise(ErrorKind::InvalidArgument, "column \"{}\": offsets descend", excerpt(column.name));
    last = next;
  }
  require(column.data, last, column, "strings");
}

void check_column(const ArrowColumn& column, std::uint64_t rows) {
  if (!simdjson::validate_utf8(column.name.data(), column.name.size())) {
    raise(ErrorKind::InvalidArgument, "column \"{}\": a name that is no UTF-8", excerpt(column.name));
  }
  const std::uint64_t end = checked_add(column.offset, rows, "rows of Arrow", ErrorKind::InvalidArgument);
  const auto bytes_of = [&](std::uint64_t count, std::uint64_t size) {
    return checked_mul(count, size, "a buffer of Arrow", ErrorKind::InvalidArgument);
  };
  if (column.validity) require(*column.validity, end / 8 + (end % 8 != 0 ? 1 : 0), column, "validity");
  if (rows == 0) return;
  if (column.kind == ArrowKind::Bool) {
    require(column.data, end / 8 + (end % 8 != 0 ? 1 : 0), column, "data");
  } else if (is_text(column)) {
    const std::uint64_t size = column.kind == ArrowKind::LargeUtf8 ? 8 : 4;
    require(column.offsets, bytes_of(checked_add(end, 1, "rows of Arrow", ErrorKind::InvalidArgument), size), column,
            "offsets");
    check_offsets(column, column.offset, end);
  } else if (!has_itemsize(column)) {
    raise(ErrorKind::InvalidArgument, "column \"{}\": values of {} bytes", excerpt(column.name), column.itemsize);
  } else {
    require(column.data, bytes_of(end, column.itemsize), column, "data");
  }
}

std::int64_t signed_at(const ArrowColumn& column, std::uint64_t i) {
  switch (column.itemsize) {
    case 1: return number_at<std::int8_t>(column.data, i);
    case 2: return number_at<std::int16_t>(column.data, i);
    case 4: return number_at<std::int32_t>(column.data, i);
    default: return number_at<std::int64_t>(column.data, i);
  }
}

std::uint64_t unsigned_at(const ArrowColumn& column, std::uint64_t i) {
  switch (column.itemsize) {
    case 1: return number_at<std::uint8_t>(column.data, i);
    case 2: return number_at<std::uint16_t>(column.data, i);
    case 4: return number_at<std::uint32_t>(column.data, i);
    default: return number_at<std::uint64_t>(column.data, i);
  }
}

enum class Form { Sorted, Compact };

// One value; false: Python has to do it.
template <Form form>
bool put_value(ByteVector& out, const ArrowColumn& column, std::uint64_t row) {
  const std::uint64_t i = column.offset + row;
  if (column.validity && !bit_at(*column.validity, i)) {
    put_bytes(out, "null");
    return true;
  }
  switch (column.kind) {
    case ArrowKind::Int: put_integer(out, signed_at(column, i)); return true;
    case ArrowKind::Uint: put_integer(out, unsigned_at(column, i)); return true;
    case ArrowKind::Bool: put_bytes(out, bit_at(column.data, i) ? "true" : "false"); return true;
    case ArrowKind::Float: {
      const double value = column.itemsize == 4 ? number_at<float>(column.data, i) : number_at<double>(column.data, i);
      if (!std::isfinite(value)) return false;
      put_float(out, value);
      return true;
    }
    case ArrowKind::Utf8:
    case ArrowKind::LargeUtf8: break;
  }
  const std::uint64_t begin = text_offset(column, i);
  const std::string_view text = column.data.substr(begin, text_offset(column, i + 1) - begin);
  if (form == Form::Compact) {
    put_json_string(out, text);
    return true;
  }
  if (!simdjson::validate_utf8(text.data(), text.size())) return false;
  put_ascii_json_string(out, text);
  return true;
}

// Columns in the order in which they are written, each with its key.
struct KeyedColumn {
  const ArrowColumn* column;
  ByteVector key;  // with what stands before and behind it
};

template <Form form>
std::vector<KeyedColumn> keyed(const std::vector<ArrowColumn>& columns) {
  std::vector<KeyedColumn> found;
  found.reserve(columns.size());
  for (const ArrowColumn& column : columns) found.push_back({&column, {}});
  if (form == Form::Sorted) {  // by code points, which is by bytes
    std::sort(found.begin(), found.end(),
              [](const KeyedColumn& a, const KeyedColumn& b) { return a.column->name < b.column->name; });
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    KeyedColumn& each = found[i];
    if (i > 0) put_bytes(each.key, form == Form::Sorted ? ", " : ",");
    if (form == Form::Sorted) {
      put_ascii_json_string(each.key, each.column->name);
      put_bytes(each.key, ": ");
    } else {
      put_json_string(each.key, each.column->name);
      put_bytes(each.key, ":");
    }
  }
  return found;
}

template <Form form>
bool put_rows(Entries& out, const std::vector<ArrowColumn>& columns, std::uint64_t rows) {
  const std::vector<KeyedColumn> order = keyed<form>(columns);
  out.ends.reserve(rows);
  for (std::uint64_t row = 0; row < rows; ++row) {
    out.bytes.push_back('{');
    for (const KeyedColumn& each : order) {
      out.bytes.insert(out.bytes.end(), each.key.begin(), each.key.end());
      if (!put_value<form>(out.bytes, *each.column, row)) return false;
    }
    out.bytes.push_back('}');
    out.ends.push_back(out.bytes.size());
  }
  return true;
}

}  // namespace

Entries fill(std::string_view prefix, std::span<const std::uint64_t> numbers, std::string_view suffix) {
  Entries out;
  out.bytes.reserve(numbers.size() * (prefix.size() + suffix.size() + 4));
  out.ends.reserve(numbers.size());
  for (const std::uint64_t number : numbers) {
    put_bytes(out.bytes, prefix);
    put_integer(out.bytes, number);
    put_bytes(out.bytes, suffix);
    out.ends.push_back(out.bytes.size());
  }
  return out;
}

std::optional<JsonRows> rows_json(const std::vector<ArrowColumn>& columns, std::uint64_t rows) {
  std::vector<std::string_view> names;
  for (const ArrowColumn& column : columns) {
    check_column(column, rows);
    names.push_back(column.name);
  }
  std::sort(names.begin(), names.end());
  if (const auto found = std::adjacent_find(names.begin(), names.end()); found != names.end()) {
    raise(ErrorKind::InvalidArgument, "column \"{}\" stands twice", excerpt(*found));
  }
  JsonRows out;
  // This one looks at what Python has to do.
  if (!put_rows<Form::Sorted>(out.sorted, columns, rows)) return std::nullopt;
  if (!put_rows<Form::Compact>(out.entries, columns, rows)) return std::nullopt;
  return out;
}

}  // namespace penstock::text
