#include "core/engine/batch_work.h"

#include "core/base/align.h"
#include "core/base/checked.h"
#include "core/columns/sliced_column.h"
#include "core/engine/batch_memory.h"
#include "core/engine/row_memory.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>

namespace penstock {

void BatchWork::prepare_rows() const {
  batch_.starts.clear();
  batch_.byte_starts.clear();
  batch_.longest = 0;
  if (batch_.rows.size() < batch_.plan.rows) batch_.rows.resize(batch_.plan.rows);
  bind_arenas(std::span(batch_.rows).first(batch_.plan.rows), batch_.most_bytes, batch_.bound);
  const BatchFormat* held = batch_.format;
  for (std::uint64_t i = 0; i < batch_.plan.valid; ++i) {
    const BatchFormat& own = batch_.row_format(i);
    if (&own != batch_.format && &own != held && !batch_.format->holds(own)) {
      raise(ErrorKind::InvalidArgument, "sources {} and {} meet in one batch, but their rows differ in shape",
            batch_.format - batch_.formats->data(), batch_.picks[i].source);
    }
    held = &own;
    batch_.rows[i].records = nullptr;
    prepare_row(i);
  }
  for (std::uint64_t i = batch_.plan.valid; i < batch_.plan.rows; ++i) batch_.rows[i].spans.clear();
}

void BatchWork::prepare_row(std::uint64_t i) const {
  batch_.rows[i].restart(batch_.picks[i].index, batch_.format->shape.length);
  batch_.rows[i].epoch = batch_.picks[i].epoch;
  batch_.rows[i].slice = batch_.row_format(i).read_slice();
}

void BatchWork::measure() const {
  batch_.starts.assign(batch_.plan.rows + 1, 0);
  batch_.byte_starts.assign(batch_.plan.rows + 1, 0);
  for (std::uint64_t i = 0; i < batch_.plan.rows; ++i) {
    const std::uint64_t length = i < batch_.plan.valid ? batch_.rows[i].length : 0;
    batch_.longest = std::max(batch_.longest, length);
    const std::uint64_t record_bytes = i < batch_.plan.valid ? batch_.row_format(i).stored_record_bytes : 0;
    constexpr ErrorKind kKind = ErrorKind::InvalidArgument;
    batch_.starts[i + 1] = checked_add(batch_.starts[i], length, "records of a batch of documents", kKind);
    batch_.byte_starts[i + 1] =
        checked_add(batch_.byte_starts[i], checked_mul(length, record_bytes, "bytes of a document", kKind),
                    "bytes of a batch of documents", kKind);
  }
}

void BatchWork::place() const {
  const BatchShape known = batch_.shape();
  batch_.records_at = align_up(batch_.format->lead_bytes, kCacheLine);
  std::uint64_t at = columns_at(batch_);
  batch_.arrays.clear();
  for (const auto& column : batch_.format->columns) {
    ArrayShape array = column->shape(known);
    const std::uint64_t bytes = align_up(array.bytes, kCacheLine);
    batch_.arrays.push_back({array.in_place ? batch_.records_at : at, std::move(array)});
    at += bytes;
  }
  for (std::uint64_t i = 0; i < batch_.plan.valid; ++i) batch_.rows[i].records = batch_.row_records(i);
  if (batch_.plan.valid < batch_.plan.rows) clear_padding();
}

void BatchWork::clear_padding() const {
  if (!batch_.format->shape.ragged) {
    std::memset(batch_.row_records(batch_.plan.valid) - batch_.format->lead_bytes, 0,
                (batch_.plan.rows - batch_.plan.valid) * batch_.format->row_bytes);
  }
  const BatchShape known = batch_.shape();
  for (std::size_t c = 0; c < batch_.arrays.size(); ++c) {
    batch_.format->columns[c]->fill_padding(known, batch_.slab.data() + batch_.arrays[c].at);
  }
}

void BatchWork::adopt_row(std::uint64_t i) const {
  Row& row = batch_.rows[i];
  std::swap(row, *batch_.fetched[i]);
  std::byte* const read = std::exchange(row.records, batch_.row_records(i));
  const BatchFormat& own = batch_.row_format(i);
  const std::uint64_t lead = own.shape.lead * own.stored_record_bytes;
  const std::uint64_t bytes = lead + (row.length + own.shape.tail) * own.stored_record_bytes;
  if (bytes > 0) std::memcpy(row.records - lead, read - lead, bytes);
}

void BatchWork::finish_row(std::uint64_t i) const {
  const BatchFormat& own = batch_.row_format(i);
  Row& row = batch_.rows[i];
  row.number = i;
  row.begin = batch_.format->shape.ragged ? batch_.starts[i] : i * row.length;
  row.epoch = batch_.picks[i].epoch;
  row.source = own.source.get();
  if (has_spans(own.wanted)) own.source->spans(row, row.spans);
  if (own.middle) own.middle->rearrange(row);
  fill_columns(own, row, i);
}

void BatchWork::fill_columns(const BatchFormat& own, Row& row, std::uint64_t i) const {
  const BatchShape known = batch_.shape();
  for (std::size_t c = 0; c < batch_.arrays.size(); ++c) {
    std::byte* const out = batch_.slab.data() + batch_.arrays[c].at;
    const auto* const sliced = own.slice ? dynamic_cast<const SlicedColumn*>(own.columns[c].get()) : nullptr;
    if (sliced == nullptr) {
      own.columns[c]->fill_row(row, known, out);
      continue;
    }
    row.number = 0;  // it is made whole, as the only row of a batch
    sliced->fill_slice(row, i, known, out);
    row.number = i;
  }
}

void BatchWork::finish() const {
  const BatchShape known = batch_.shape();
  for (std::size_t c = 0; c < batch_.arrays.size(); ++c) {
    BatchView view{known, batch_.slab.data() + batch_.arrays[c].at, batch_.arrays[c].shape};
    batch_.format->columns[c]->finish(view);
  }
}

}  // namespace penstock
