#include "core/columns/record_array.h"

#include "core/base/checked.h"

#include <algorithm>
#include <cassert>

namespace penstock {

std::uint64_t Padding::row_length(const BatchShape& batch) const {
  if (length > 0) return length;
  const std::uint64_t longest = std::max<std::uint64_t>(batch.longest, 1);
  return checked_mul((longest - 1) / multiple_of + 1, multiple_of, "records of a padded row",
                     ErrorKind::InvalidArgument);
}

RecordArray::RecordArray(const SourceInfo& source, std::uint64_t shorten, std::optional<Padding> padding)
    : ragged_(source.shape.ragged), shorten_(shorten), padding_(padding) {
  if (padding_ && !ragged_) {
    raise(ErrorKind::InvalidArgument, "{}: padded rows are of documents, not of windows", source.path);
  }
  if (padding_ && padding_->multiple_of == 0) raise(ErrorKind::InvalidArgument, "multiple_of=0: must be at least 1");
}

Dims RecordArray::dims(const BatchShape& batch) const {
  Dims dims;
  if (!ragged_ || padding_) dims.push_back(batch.rows);
  dims.push_back(padding_ ? padding_->row_length(batch) : ragged_ ? batch.records : batch.row_records - shorten_);
  return dims;
}

std::uint64_t RecordArray::count(const BatchShape& batch) const {
  if (!padding_) return batch.records_but(shorten_);
  return checked_mul(batch.rows, padding_->row_length(batch), "records of a padded batch", ErrorKind::InvalidArgument);
}

RecordArray::Place RecordArray::row(const BatchShape& batch, std::uint64_t number) const {
  if (!ragged_) {
    const std::uint64_t length = batch.row_records - shorten_;
    return {number * length, length, 0};
  }
  const std::uint64_t records = batch.starts[number + 1] - batch.starts[number];
  if (!padding_) return {batch.starts[number], records, 0};
  const std::uint64_t length = padding_->row_length(batch);
  assert(records <= length);
  return {number * length, length, padding_->left ? length - records : 0};
}

RecordArray::Place RecordArray::padding_rows(const BatchShape& batch) const {
  if (ragged_ && !padding_) return {batch.records, 0, 0};  // they are empty
  const std::uint64_t length = padding_ ? padding_->row_length(batch) : batch.row_records - shorten_;
  return {batch.valid * length, (batch.rows - batch.valid) * length, 0};
}

}  // namespace penstock
