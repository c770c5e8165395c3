#include "core/batch/batch.h"

#include "core/base/checked.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace penstock {
namespace {

constexpr std::uint64_t kAlign = 64;  // a cache line; enough for any vector load
constexpr std::uint64_t kPage = 4096;
constexpr std::int64_t kIgnoredLabel = -100;

std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + kAlign - 1) / kAlign * kAlign;
}

// A copy to an address that is, within its page, a few bytes beyond that of its source takes three to four times as
// long (measured on an AMD EPYC: 20 µs instead of 6 for 32 KiB): the processor takes each load to depend on the store
// before. Windows of whole pages with a record more would meet that in every row but the first. So rows lie a cache
// line more apart where they exceed whole pages by less than one.
std::uint64_t row_stride(const RowShape& shape, std::uint64_t record_bytes) {
  const std::uint64_t records = shape.lead + shape.length + shape.tail;
  if (shape.ragged || record_bytes == 0 || shape.length > UINT64_MAX / 2 / record_bytes) return records;
  const std::uint64_t beyond = records * record_bytes % kPage;
  if (records * record_bytes < kPage || beyond == 0 || beyond >= kAlign) return records;
  return records + (kAlign - beyond + record_bytes - 1) / record_bytes;
}

// Byte of the slab: where a lead is read before a row that begins a page, both begin a cache line but for the lead.
std::uint64_t first_record_at(const BatchFormat& format) {
  const std::uint64_t lead_bytes = format.shape.ragged ? 0 : format.shape.lead * format.stored_record_bytes;
  return aligned(lead_bytes) - lead_bytes;
}

template <typename T>
void fill_as(std::byte* out, std::uint64_t count, std::int64_t value) {
  std::fill_n(reinterpret_cast<T*>(out), count, static_cast<T>(value));
}

// Labels are signed integers (the constructor of BatchFormat saw to it), so -100 always fits.
void fill_labels(std::byte* out, std::uint64_t count, std::uint32_t item_bytes) {
  switch (item_bytes) {
    case 1: return fill_as<std::int8_t>(out, count, kIgnoredLabel);
    case 2: return fill_as<std::int16_t>(out, count, kIgnoredLabel);
    case 4: return fill_as<std::int32_t>(out, count, kIgnoredLabel);
    default: return fill_as<std::int64_t>(out, count, kIgnoredLabel);
  }
}

void pad_column(const Batch& batch, const Column& column, bool labels, std::byte* out) {
  if (batch.format->shape.ragged) return;  // padding rows are empty
  const std::uint64_t row_records = batch.format->shape.length - column.shorten;
  const std::uint64_t first = batch.plan.valid * row_records;
  const std::uint64_t count = (batch.plan.rows - batch.plan.valid) * row_records;
  std::byte* at = out + first * column.record_bytes;
  if (labels) {
    fill_labels(at, count * (column.record_bytes / column.type.bytes), column.type.bytes);
  } else {
    std::memset(at, 0, count * column.record_bytes);
  }
}

// Where row i of the column begins, in records of the column.
std::uint64_t column_row_start(const Batch& batch, const Column& column, std::uint64_t i) {
  return batch.format->shape.ragged ? batch.starts[i] : i * (batch.format->shape.length - column.shorten);
}

void cast_row(Batch& batch, const Column& column, std::uint64_t i, std::byte* out) {
  const BatchFormat& format = *batch.format;
  const Leaf& leaf = format.source->info().schema.leaves()[column.leaf];
  const std::uint64_t count = batch.row_length(i) - column.shorten;
  try {
    if (column.in_place) return check_values(leaf, batch.row_records(i), count, column.type);
    cast_leaf(leaf, batch.row_records(i) + column.skip * format.stored_record_bytes, format.stored_record_bytes, count,
              column.type, out + column_row_start(batch, column, i) * column.record_bytes);
  } catch (const Error& error) {
    const char* const where =
        column.shorten > 0 ? ", of inputs and labels (always signed; lookahead=0 makes none)" : "";
    throw Error(error.kind(),
                fmt::format("observation {}{}: {}", with_commas(batch.picks[i].index), where, error.what()));
  }
}

}  // namespace

BatchFormat::BatchFormat(std::shared_ptr<const Source> source_, std::vector<Column> columns_, int labels_)
    : source(std::move(source_)),
      shape(source->info().shape),
      stored_record_bytes(source->info().stored_record_bytes),
      columns(std::move(columns_)),
      labels(labels_),
      row_stride_records_(row_stride(shape, stored_record_bytes)) {
  for (Column& column : columns) {
    if (column.leaf >= source->info().schema.leaves().size()) {
      raise(ErrorKind::InvalidArgument, "column {}: the records have no field number {}", column.name, column.leaf);
    }
    const Leaf& leaf = source->info().schema.leaves()[column.leaf];
    check_cast(leaf, column.type);
    column.record_bytes = column.type.bytes * leaf.count();
    column.in_place = column.shorten == 0 && (shape.ragged || row_stride_records_ == shape.length) &&
                      column.record_bytes == stored_record_bytes && has_same_bytes(leaf, column.type);
    const bool fits =
        column.skip <= column.shorten && (shape.ragged ? column.shorten == 0 : column.shorten < shape.length);
    if (!fits) {
      raise(ErrorKind::InvalidArgument, "column {}: skips {} and drops {} records of a row of {}", column.name,
            column.skip, column.shorten, shape.length);
    }
  }
  if (labels >= 0 && columns.at(static_cast<std::size_t>(labels)).type.kind != 'i') {
    raise(ErrorKind::InvalidArgument, "labels are {}: they must be signed integers, since padding is {}",
          columns[static_cast<std::size_t>(labels)].type.str(), kIgnoredLabel);
  }
}

std::uint64_t Batch::record_count() const noexcept {
  if (format->shape.ragged) return starts.empty() ? 0 : starts.back();
  return plan.rows * format->shape.length;
}

std::uint64_t Batch::row_length(std::uint64_t i) const noexcept {
  return format->shape.ragged ? starts[i + 1] - starts[i] : format->shape.length;
}

std::byte* Batch::row_records(std::uint64_t i) noexcept {
  const std::uint64_t record = format->shape.ragged ? starts[i] : i * format->row_stride_records() + format->shape.lead;
  return slab.data() + records_at + record * format->stored_record_bytes;
}

std::uint64_t Batch::column_records(const Column& column) const noexcept {
  return format->shape.ragged ? record_count() : plan.rows * (format->shape.length - column.shorten);
}

std::uint64_t Batch::needed_bytes() const {
  const std::uint64_t records = format->shape.ragged
                                    ? record_count()
                                    : checked_mul(plan.rows, format->row_stride_records(), "records of a batch");
  std::uint64_t bytes =
      aligned(checked_add(first_record_at(*format),
                          checked_mul(records, format->stored_record_bytes, "bytes of a batch"), "bytes of a batch"));
  for (const Column& column : format->columns) {
    if (column.in_place) continue;
    bytes = checked_add(bytes, aligned(checked_mul(column_records(column), column.record_bytes, "bytes of a column")),
                        "bytes of a batch");
  }
  return bytes;
}

std::uint64_t Batch::held_bytes() const noexcept {
  std::uint64_t bytes = slab.bytes();
  for (const Row& row : rows) bytes += row.arena.capacity_bytes();
  return bytes;
}

bool BatchFormat::holds(const BatchFormat& other) const noexcept {
  const auto same = [](const Column& a, const Column& b) {
    return a.record_bytes == b.record_bytes && a.type == b.type && a.skip == b.skip && a.shorten == b.shorten &&
           a.in_place == b.in_place;
  };
  return shape.ragged == other.shape.ragged && shape.length == other.shape.length && shape.lead == other.shape.lead &&
         shape.tail == other.shape.tail && stored_record_bytes == other.stored_record_bytes &&
         std::equal(columns.begin(), columns.end(), other.columns.begin(), other.columns.end(), same);
}

void Batch::prepare_rows() {
  starts.clear();
  if (rows.size() < plan.rows) rows.resize(plan.rows);
  for (std::uint64_t i = 0; i < plan.valid; ++i) {
    const BatchFormat& own = (*formats)[picks[i].source];
    if (!format->holds(own)) {
      raise(ErrorKind::InvalidArgument, "sources {} and {} meet in one batch, but their rows differ in shape",
            format - formats->data(), picks[i].source);
    }
    rows[i].records = nullptr;
    prepare_row(i);
  }
  for (std::uint64_t i = plan.valid; i < plan.rows; ++i) rows[i].spans.clear();
}

void Batch::prepare_row(std::uint64_t i) {
  Row& row = rows[i];
  row.index = picks[i].index;
  row.length = format->shape.length;
  row.measured = false;
  row.state = nullptr;
  row.round = 0;
  row.error = nullptr;
  row.arena.reset();
  row.spans.clear();
}

void Batch::measure() {
  starts.assign(plan.rows + 1, 0);
  for (std::uint64_t i = 0; i < plan.rows; ++i) {
    starts[i + 1] = checked_add(starts[i], i < plan.valid ? rows[i].length : 0, "records of a batch of documents");
  }
}

void Batch::place() {
  records_at = first_record_at(*format);
  const std::uint64_t records = format->shape.ragged ? record_count() : plan.rows * format->row_stride_records();
  std::uint64_t at = aligned(records_at + records * format->stored_record_bytes);
  columns_at.clear();
  for (const Column& column : format->columns) {
    columns_at.push_back(column.in_place ? records_at : at);
    if (!column.in_place) at += aligned(column_records(column) * column.record_bytes);
  }
  for (std::uint64_t i = 0; i < plan.valid; ++i) rows[i].records = row_records(i);
  clear_padding();
}

void Batch::clear_padding() {
  if (plan.valid == plan.rows || format->shape.ragged) return;
  const std::uint64_t row_bytes = format->row_stride_records() * format->stored_record_bytes;
  std::memset(slab.data() + records_at + plan.valid * row_bytes, 0, (plan.rows - plan.valid) * row_bytes);
  for (std::size_t c = 0; c < format->columns.size(); ++c) {
    pad_column(*this, format->columns[c], static_cast<int>(c) == format->labels, slab.data() + columns_at[c]);
  }
}

void Batch::adopt_row(std::uint64_t i) {
  Row& row = rows[i];
  std::swap(row, *fetched[i]);
  std::byte* const read = std::exchange(row.records, row_records(i));
  const RowShape& shape = format->shape;
  const std::uint64_t record_bytes = format->stored_record_bytes;
  const std::uint64_t records = shape.lead + row_length(i) + shape.tail;
  if (records * record_bytes == 0) return;
  std::memcpy(row.records - shape.lead * record_bytes, read - shape.lead * record_bytes, records * record_bytes);
}

void Batch::finish_row(std::uint64_t i) {
  const BatchFormat& own = (*formats)[picks[i].source];
  if (has_spans(own.wanted)) own.source->spans(rows[i], rows[i].spans);
  for (std::size_t c = 0; c < format->columns.size(); ++c) {
    cast_row(*this, format->columns[c], i, slab.data() + columns_at[c]);
  }
}

void cast_column(Batch& batch, const Column& column, bool labels, std::byte* out) {
  Column copied = column;
  copied.in_place = false;
  for (std::uint64_t i = 0; i < batch.plan.valid; ++i) cast_row(batch, copied, i, out);
  pad_column(batch, copied, labels, out);
}

}  // namespace penstock
