#include "core/columns/value_column.h"

#include "core/base/checked.h"

#include <algorithm>
#include <cstring>

namespace penstock {

ValueColumn::ValueColumn(const ValueSpec& spec, const SourceInfo& source) {
  const auto found = std::find_if(source.values.begin(), source.values.end(),
                                  [&](const ValueType& value) { return value.name == spec.name; });
  if (found == source.values.end()) {
    raise(ErrorKind::InvalidArgument, "the documents of this view have no value {}", excerpt(spec.name));
  }
  if (!source.shape.ragged) {
    raise(ErrorKind::InvalidArgument, "column {}: rows are windows, which may hold several documents",
          excerpt(spec.name));
  }
  type_ = *found;
  number_ = static_cast<std::size_t>(found - source.values.begin());
}

ArrayShape ValueColumn::shape(const BatchShape& batch) const {
  ArrayShape array{type_.type, {batch.rows}, 0, false};
  array.dims.insert(array.dims.end(), type_.dims.begin(), type_.dims.end());
  array.bytes = checked_mul(batch.rows, type_.bytes(), "bytes of a column", ErrorKind::InvalidArgument);
  return array;
}

void ValueColumn::fill_row(const Row& row, const BatchShape& /*batch*/, std::byte* out) const {
  const std::uint64_t bytes = type_.bytes();
  std::memcpy(out + row.number * bytes, row.values->at[number_], bytes);
}

void ValueColumn::fill_padding(const BatchShape& batch, std::byte* out) const {
  fill_value_padding(type_, batch.rows - batch.valid, out + batch.valid * type_.bytes());
}

void fill_value_padding(const ValueType& type, std::uint64_t rows, std::byte* out) noexcept {
  std::memset(out, type.is_category ? 0xff : 0, rows * type.bytes());
}

}  // namespace penstock
