#include "core/columns/sliced_column.h"

#include "core/base/align.h"
#include "core/base/checked.h"

#include <cassert>
#include <cstring>
#include <utility>
#include <vector>

namespace penstock {
namespace {

// The only row of a batch.
BatchShape one_row(const BatchShape& batch, std::uint64_t valid) {
  return {1, valid, false, batch.row_records, batch.row_records, {}};
}

// Of the axes behind those of rows and records.
std::uint64_t value_bytes(ScalarType type, const Dims& dims) {
  std::uint64_t bytes = type.bytes;
  for (std::size_t i = 2; i < dims.size(); ++i) bytes *= dims[i];
  return bytes;
}

// A row of the whole column; of the thread, which makes one row after the other.
std::byte* row_memory(std::uint64_t bytes) {
  thread_local std::vector<std::byte> memory;
  if (memory.size() < bytes) memory.resize(bytes);
  return memory.data();
}

}  // namespace

SlicedColumn::SlicedColumn(std::shared_ptr<const Column> whole, std::shared_ptr<const RowSlice> slice)
    : whole_(std::move(whole)), slice_(std::move(slice)) {}

ArrayShape SlicedColumn::shape(const BatchShape& batch) const {
  ArrayShape array = whole_->shape(batch);
  std::uint64_t end = 0;
  const auto place = [&](ScalarType type, Dims& dims) {
    assert(dims.size() >= 2);
    dims[1] = slice_->records();
    const std::uint64_t at = align_up(end, kCacheLine);
    constexpr ErrorKind kKind = ErrorKind::InvalidArgument;
    const std::uint64_t records = checked_mul(dims[0], dims[1], "records of a column", kKind);
    end = checked_add(at, checked_mul(records, value_bytes(type, dims), "bytes of a column", kKind),
                      "bytes of a column", kKind);
    return at;
  };
  place(array.type, array.dims);
  for (FurtherArray& further : array.further) further.at = place(further.type, further.dims);
  array.bytes = end;
  return array;
}

void SlicedColumn::fill_row(const Row& row, const BatchShape& batch, std::byte* out) const {
  assert(row.number == 0);
  fill_slice(row, 0, batch, out);
}

void SlicedColumn::fill_slice(const Row& row, std::uint64_t number, const BatchShape& batch, std::byte* out) const {
  const BatchShape one = one_row(batch, 1);
  const ArrayShape whole = whole_->shape(one);
  std::byte* const made = row_memory(whole.bytes);
  whole_->fill_row(row, one, made);
  copy(row.spans, number, batch, made, whole, out);
}

void SlicedColumn::fill_padding(const BatchShape& batch, std::byte* out) const {
  const BatchShape one = one_row(batch, 0);
  const ArrayShape whole = whole_->shape(one);
  std::byte* const made = row_memory(whole.bytes);
  whole_->fill_padding(one, made);
  for (std::uint64_t i = batch.valid; i < batch.rows; ++i) copy({}, i, batch, made, whole, out);
}

void SlicedColumn::copy(const SpanTable& spans, std::uint64_t number, const BatchShape& batch, const std::byte* made,
                        const ArrayShape& whole, std::byte* out) const {
  const ArrayShape sliced = shape(batch);
  const auto copy_array = [&](std::uint64_t bytes, std::uint64_t from_at, std::uint64_t to_at) {
    std::byte* to = out + to_at + number * slice_->records() * bytes;
    slice_->for_each(spans, [&](std::uint64_t begin, std::uint64_t end) {
      std::memcpy(to, made + from_at + begin * bytes, (end - begin) * bytes);
      to += (end - begin) * bytes;
    });
  };
  copy_array(value_bytes(whole.type, whole.dims), 0, 0);
  for (std::size_t i = 0; i < whole.further.size(); ++i) {
    const FurtherArray& further = whole.further[i];
    copy_array(value_bytes(further.type, further.dims), further.at, sliced.further[i].at);
  }
}

}  // namespace penstock
