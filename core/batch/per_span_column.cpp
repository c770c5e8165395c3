#include "core/batch/per_span_column.h"

#include "core/base/checked.h"
#include "core/batch/span_values.h"

#include <string_view>
#include <utility>

namespace penstock {

PerSpanColumn::PerSpanColumn(PerSpanSpec spec, const SourceInfo& source)
    : spec_(std::move(spec)), ragged_(source.shape.ragged) {
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
  if (ragged_ ? spec_.shorten > 0 : spec_.shorten >= source.shape.length) {
    raise(ErrorKind::InvalidArgument, "column {}: drops {} records of a row of {}", excerpt(spec_.name), spec_.shorten,
          source.shape.length);
  }
}

ArrayShape PerSpanColumn::shape(const BatchShape& batch) const {
  ArrayShape array{.type = spec_.type};
  if (!ragged_) array.dims.push_back(batch.rows);
  array.dims.push_back(ragged_ ? batch.records : batch.row_records - spec_.shorten);
  array.bytes =
      checked_mul(batch.records_but(spec_.shorten), spec_.type.bytes, "bytes of a column", ErrorKind::InvalidArgument);
  return array;
}

void PerSpanColumn::fill_padding(const BatchShape& batch, std::byte* out) const {
  if (ragged_) return;  // padding rows are empty
  const std::uint64_t row_records = batch.row_records - spec_.shorten;
  fill_values(out + batch.valid * row_records * spec_.type.bytes, spec_.type.bytes, spec_.fill,
              (batch.rows - batch.valid) * row_records);
}

}  // namespace penstock
