#include "core/columns/leaf_column.h"

#include "core/base/checked.h"
#include "core/rows/cast.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace penstock {
namespace {

constexpr std::int64_t kIgnoredLabel = -100;

template <typename T>
void fill_as(std::byte* out, std::uint64_t count, std::int64_t value) {
  std::fill_n(reinterpret_cast<T*>(out), count, static_cast<T>(value));
}

// Bytes of the fields before the leaf, in one record; where fields lie apart, an array each.
std::uint64_t bytes_before(const SourceInfo& source, const Leaf& leaf) {
  std::uint64_t bytes = 0;
  for (const Leaf& other : source.schema.leaves()) {
    if (other.name == leaf.name) break;
    bytes += other.item_bytes * other.count();
  }
  return bytes;
}

// Where fields lie apart, the leaf in a record that holds nothing else.
Leaf alone(Leaf leaf) {
  std::uint64_t stride = leaf.item_bytes;
  for (std::size_t i = leaf.dims.size(); i-- > 0; stride *= leaf.dims[i]) leaf.stride_bytes[i] = stride;
  leaf.offset_bytes = 0;
  return leaf;
}

}  // namespace

void fill_ignored_labels(std::byte* out, std::uint64_t count, std::uint32_t item_bytes) {
  switch (item_bytes) {
    case 1: return fill_as<std::int8_t>(out, count, kIgnoredLabel);
    case 2: return fill_as<std::int16_t>(out, count, kIgnoredLabel);
    case 4: return fill_as<std::int32_t>(out, count, kIgnoredLabel);
    default: return fill_as<std::int64_t>(out, count, kIgnoredLabel);
  }
}

const Leaf& find_leaf(const SourceInfo& source, const std::string& field) {
  const int at = source.schema.find(field);
  if (at < 0) raise(ErrorKind::InvalidArgument, "the records have no field {}", field);
  return source.schema.leaves()[static_cast<std::size_t>(at)];
}

LeafColumn::LeafColumn(FieldSpec spec, const SourceInfo& source, bool end_to_end)
    : spec_(std::move(spec)),
      leaf_(find_leaf(source, spec_.field)),
      stride_bytes_(source.stored_record_bytes),
      record_bytes_(spec_.type.bytes * leaf_.count()),
      ragged_(source.shape.ragged) {
  check_cast(leaf_, spec_.type);
  const std::uint64_t length = source.shape.length;
  if (spec_.skip > spec_.shorten || (ragged_ ? spec_.shorten > 0 : spec_.shorten >= length)) {
    raise(ErrorKind::InvalidArgument, "column {}: skips {} and drops {} records of a row of {}", spec_.name, spec_.skip,
          spec_.shorten, length);
  }
  if (spec_.labels && spec_.type.kind != 'i') {
    raise(ErrorKind::InvalidArgument, "labels are {}: they must be signed integers, since padding is {}",
          spec_.type.str(), kIgnoredLabel);
  }
  in_place_ = end_to_end && spec_.shorten == 0 && record_bytes_ == source.stored_record_bytes && !spec_.labels &&
              has_same_bytes(leaf_, spec_.type);
  if (source.fields_apart) {
    apart_bytes_ = bytes_before(source, leaf_);
    leaf_ = alone(std::move(leaf_));
    stride_bytes_ = leaf_.item_bytes * leaf_.count();
  }
}

ArrayShape LeafColumn::shape(const BatchShape& batch) const {
  ArrayShape array{.type = spec_.type, .in_place = in_place_};
  if (!ragged_) array.dims.push_back(batch.rows);
  array.dims.push_back(ragged_ ? batch.records : batch.row_records - spec_.shorten);
  array.dims.insert(array.dims.end(), leaf_.dims.begin(), leaf_.dims.end());
  if (!in_place_)
    array.bytes =
        checked_mul(batch.records_but(spec_.shorten), record_bytes_, "bytes of a column", ErrorKind::InvalidArgument);
  return array;
}

void LeafColumn::cast(const Row& row, std::uint64_t first, std::uint64_t count, std::byte* out) const {
  const std::byte* const records = row.records + apart_bytes_ * row.length;
  try {
    if (in_place_) return check_values(leaf_, records, count, spec_.type);
    cast_leaf(leaf_, records + first * stride_bytes_, stride_bytes_, count, spec_.type, out);
  } catch (const Error& error) {
    const char* const where = spec_.shorten > 0 ? ", of inputs and labels (always signed; lookahead=0 makes none)" : "";
    throw Error(error.kind(), fmt::format("observation {}{}: {}", with_commas(row.index), where, error.what()));
  }
}

void LeafColumn::fill_row(const Row& row, const BatchShape& /*batch*/, std::byte* out) const {
  const std::uint64_t count = row.length - spec_.shorten;
  const std::uint64_t begin = ragged_ ? row.begin : row.number * count;
  cast(row, spec_.skip, count, out + begin * record_bytes_);
}

void LeafColumn::fill_padding(const BatchShape& batch, std::byte* out) const {
  if (ragged_) return;  // padding rows are empty
  const std::uint64_t row_bytes = (batch.row_records - spec_.shorten) * record_bytes_;
  const std::uint64_t bytes = (batch.rows - batch.valid) * row_bytes;
  std::byte* first = out + batch.valid * row_bytes;
  if (spec_.labels) {
    fill_ignored_labels(first, bytes / spec_.type.bytes, spec_.type.bytes);
  } else {
    std::memset(first, 0, bytes);
  }
}

}  // namespace penstock
