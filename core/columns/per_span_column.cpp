#include "core/columns/per_span_column.h"

#include "core/base/checked.h"
#include "core/rows/field_place.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace penstock {
namespace {

// All equal to the low bytes of `value`.
void fill_values(std::byte* out, std::uint32_t item_bytes, std::uint64_t value, std::uint64_t count) {
  with_unsigned(item_bytes,
                [&]<typename T>(T) { std::fill_n(reinterpret_cast<T*>(out), count, static_cast<T>(value)); });
}

}  // namespace

PerSpanColumn::PerSpanColumn(PerSpanSpec spec, const SourceInfo& source)
    : spec_(std::move(spec)), places_(source, spec_.shorten, spec_.padding) {
  const std::uint32_t bytes = spec_.type.bytes;
  const bool is_width = bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
  if (std::string_view("biuf").find(spec_.type.kind) == std::string_view::npos || !is_width) {
    raise(ErrorKind::InvalidArgument, "column {}: a value of a span is a bool, an integer or a float, not {}",
          excerpt(spec_.name), spec_.type.name());
  }
  if (source.schema.leaves().empty()) {
    raise(ErrorKind::InvalidArgument, "column {}: documents without records have nothing to spread a value over",
          excerpt(spec_.name));
  }
  if (source.shape.ragged ? spec_.shorten > 0 : spec_.shorten >= source.shape.length) {
    raise(ErrorKind::InvalidArgument, "column {}: drops {} records of a row of {}", excerpt(spec_.name), spec_.shorten,
          source.shape.length);
  }
}

ArrayShape PerSpanColumn::shape(const BatchShape& batch) const {
  return {
      .type = spec_.type,
      .dims = places_.dims(batch),
      .bytes = checked_mul(places_.count(batch), spec_.type.bytes, "bytes of a column", ErrorKind::InvalidArgument)};
}

void PerSpanColumn::fill_padding(const BatchShape& batch, std::byte* out) const {
  const RecordArray::Place rows = places_.padding_rows(batch);
  fill_values(out + rows.begin * spec_.type.bytes, spec_.type.bytes, spec_.fill, rows.length);
}

}  // namespace penstock
