#include "core/batch/batch.h"

#include "core/base/align.h"
#include "core/base/checked.h"
#include "core/batch/leaf_column.h"
#include "core/batch/sliced_column.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <utility>

namespace penstock {
namespace {

constexpr std::uint64_t kPage = 4096;
// No machine addresses more; sums of two such sizes, aligned, fit 64 bits.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 56;

std::uint64_t aligned(std::uint64_t bytes) {
  return align_up(bytes, kCacheLine);
}

// A copy to an address that is, within its page, a few bytes beyond that of its source takes three to four times as
// long (measured on an AMD EPYC: 20 µs instead of 6 for 32 KiB): the processor takes each load to depend on the store
// before. Windows of whole pages with a record more would meet that in every row but the first. So rows lie a cache
// line more apart where they exceed whole pages by less than one; whole records, so that all are as aligned as one is.
std::uint64_t row_stride_bytes(const RowShape& shape, std::uint64_t record_bytes) {
  if (shape.ragged) return 0;
  constexpr ErrorKind kKind = ErrorKind::InvalidArgument;
  const std::uint64_t records = checked_add(checked_add(shape.lead, shape.length, "records of a row", kKind),
                                            shape.tail, "records of a row", kKind);
  if (record_bytes > 0 && records > kMostBytes / record_bytes) {
    raise(kKind, "no memory for a window of {} records of {} bytes: use a smaller window", with_commas(shape.length),
          with_commas(record_bytes));
  }
  const std::uint64_t bytes = records * record_bytes;
  const std::uint64_t beyond = bytes % kPage;
  if (bytes < kPage || beyond == 0 || beyond >= kCacheLine) return bytes;
  return bytes + align_up(kCacheLine - beyond, record_bytes);
}

bool is_end_to_end(const BatchFormat& format) {
  return format.shape.ragged || format.row_bytes == format.shape.length * format.stored_record_bytes;
}

bool same_array(const ArrayShape& a, const ArrayShape& b) {
  return a.type == b.type && a.dims == b.dims && a.in_place == b.in_place &&
         std::equal(a.further.begin(), a.further.end(), b.further.begin(), b.further.end());
}

// Whether the columns of a row, in a batch of one, are the same arrays.
bool have_same_arrays(const BatchFormat& a, const BatchFormat& b) {
  const BatchShape one{1, 1, a.shape.ragged, a.shape.length, a.shape.ragged ? 1 : a.shape.length, {}};
  return std::equal(
      a.columns.begin(), a.columns.end(), b.columns.begin(), b.columns.end(),
      [&](const auto& left, const auto& right) { return same_array(left->shape(one), right->shape(one)); });
}

// For one that memory does not hold.
const char* advice(const Batch& batch) {
  if (batch.plan.rows > 1) return "use a smaller batch size";
  return batch.format->shape.ragged ? "its document is too large" : "use a smaller window";
}

void make_columns(BatchFormat& format, bool end_to_end) {
  format.columns.clear();
  for (const ColumnSpec& spec : format.specs) {
    const bool is_sliced = format.slice && is_of_records(spec);
    auto column = make_column(spec, format.source->info(), end_to_end && !format.slice);
    format.columns.push_back(is_sliced ? std::make_shared<SlicedColumn>(std::move(column), format.slice) : column);
  }
}

// The slice, with what columns need beside it.
std::shared_ptr<const RowSlice> reading_for(const std::vector<ColumnSpec>& specs,
                                            const std::shared_ptr<const RowSlice>& slice) {
  if (!slice) return nullptr;
  std::uint64_t after = 0;
  for (const ColumnSpec& spec : specs) after = std::max(after, records_after(spec));
  return std::make_shared<const RowSlice>(slice->reading_after(after));
}

// Integers are one kind: each becomes any that holds its values.
char kind_of(const Leaf& leaf) {
  return leaf.is_integer() ? 'i' : leaf.kind;
}

void check_kinds(const BatchFormat& a, const BatchFormat& b, std::size_t number) {
  for (const ColumnSpec& spec : b.specs) {
    const auto* const field = std::get_if<FieldSpec>(&spec);
    if (field == nullptr || a.source->info().schema.find(field->field) < 0) continue;
    const Leaf& one = find_leaf(a.source->info(), field->field);
    const Leaf& other = find_leaf(b.source->info(), field->field);
    if (kind_of(one) == kind_of(other) && one.dims == other.dims) continue;
    const auto words = [](const Leaf& leaf) {
      const std::string type = ScalarType{leaf.kind, leaf.item_bytes}.name();
      return leaf.dims.empty() ? type : fmt::format("{} [{}]", type, fmt::join(leaf.dims, ", "));
    };
    raise(ErrorKind::InvalidArgument,
          "field {}: {} in source 0, {} in source {}: they make no one array; give one of them another name",
          field->field, words(one), words(other), number);
  }
}

// Room for the largest row of a group, and no column in place of the records.
void join_group(std::vector<BatchFormat*>& group) {
  const bool equal = std::all_of(group.begin(), group.end(), [&](const BatchFormat* format) {
    return format->has_records_of(*group[0]) && format->shape.lead == group[0]->shape.lead &&
           format->shape.tail == group[0]->shape.tail;
  });
  if (equal) return;
  std::uint64_t lead = 0;
  std::uint64_t body = 0;
  for (const BatchFormat* format : group) {
    lead = std::max(lead, format->lead_bytes);
    body = std::max(body, format->row_bytes - std::min(format->row_bytes, format->lead_bytes));
  }
  for (BatchFormat* format : group) {
    format->lead_bytes = lead;
    format->row_bytes = lead + body;
    make_columns(*format, false);
  }
}

}  // namespace

BatchFormat::BatchFormat(std::shared_ptr<const Source> source_, std::vector<ColumnSpec> specs_, Parts wanted_,
                         const std::shared_ptr<const RowSlice>& slice_)
    : source(std::move(source_)),
      shape(source->info().shape),
      stored_record_bytes(source->info().stored_record_bytes),
      specs(std::move(specs_)),
      wanted(wanted_),
      slice(reading_for(specs, slice_)),
      lead_bytes(shape.ragged ? 0 : shape.lead * stored_record_bytes),
      row_bytes(row_stride_bytes(shape, stored_record_bytes)) {
  make_columns(*this, is_end_to_end(*this));
  for (const ColumnSpec& spec : specs) wanted = wanted | parts_of(spec);
  if (slice && slice->is_by_documents()) wanted = wanted | Parts::Spans;
}

bool BatchFormat::has_records_of(const BatchFormat& other) const noexcept {
  const SourceInfo& own = source->info();
  const SourceInfo& theirs = other.source->info();
  return stored_record_bytes == other.stored_record_bytes && own.fields_apart == theirs.fields_apart &&
         own.schema.json() == theirs.schema.json();
}

bool BatchFormat::holds(const BatchFormat& other) const {
  return shape.ragged == other.shape.ragged && shape.length == other.shape.length && lead_bytes == other.lead_bytes &&
         row_bytes == other.row_bytes && have_same_arrays(*this, other);
}

BatchFormats join(BatchFormats formats) {
  std::vector<std::vector<BatchFormat*>> groups;
  for (BatchFormat& format : formats) {
    check_kinds(formats[0], format, static_cast<std::size_t>(&format - formats.data()));
    const auto found = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
      return group[0]->shape.ragged == format.shape.ragged && group[0]->shape.length == format.shape.length;
    });
    found == groups.end() ? groups.push_back({&format}) : found->push_back(&format);
  }
  for (auto& group : groups) join_group(group);
  return formats;
}

void bind_arenas(std::span<Row> rows, std::uint64_t most_bytes, ArenaBound& bound) noexcept {
  std::uint64_t kept = 0;
  for (Row& row : rows) {
    row.arena.bound_by(&bound);
    kept += row.arena.capacity_bytes();
  }
  if (kept > most_bytes / 2) {
    for (Row& row : rows) row.arena.release();
  }
  // What one row kept serves no other one: if it counted, it would depend on earlier rows what is refused.
  bound.restart(most_bytes);
}

void raise_too_long(const SourceInfo& of, std::span<const Row> rows, std::uint64_t bytes, std::uint64_t most_bytes) {
  const auto longest =
      std::max_element(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.length < b.length; });
  raise(
      ErrorKind::InvalidArgument,
      "{}: {} documents that are read together need {} bytes, at most {} are allowed; the longest, document {} of the "
      "view, has {} records: use a smaller batch size (or fetch), or raise max_bytes",
      of.path, with_commas(rows.size()), with_commas(bytes), with_commas(most_bytes), with_commas(longest->index),
      with_commas(longest->length));
}

BatchShape Batch::shape() const noexcept {
  return {plan.rows, plan.valid, format->shape.ragged, format->shape.length, record_count(), starts, longest};
}

std::uint64_t Batch::record_count() const noexcept {
  if (format->shape.ragged) return starts.empty() ? 0 : starts.back();
  return plan.rows * format->shape.length;
}

std::uint64_t Batch::row_length(std::uint64_t i) const noexcept {
  return format->shape.ragged ? starts[i + 1] - starts[i] : format->shape.length;
}

std::byte* Batch::row_records(std::uint64_t i) noexcept {
  return slab.data() + records_at + (format->shape.ragged ? byte_starts[i] : i * format->row_bytes);
}

bool Batch::has_records() const {
  if (format->source->info().fields_apart) return false;
  if (formats->size() == 1) return true;
  return std::all_of(picks.begin(), picks.end(), [&](const Pick& pick) {
    const BatchFormat& own = (*formats)[pick.source];
    return &own == format || own.has_records_of(*format);
  });
}

// The lead of the first row is read before its record 0, which begins a cache line.
std::uint64_t Batch::columns_at() const {
  const std::uint64_t before = aligned(format->lead_bytes);
  if (format->shape.ragged) return aligned(before + (byte_starts.empty() ? 0 : byte_starts.back()));
  return aligned(before + plan.rows * format->row_bytes);
}

std::uint64_t Batch::needed_bytes() const {
  const auto check = [&](std::uint64_t bytes) {
    if (bytes > kMostBytes) raise_too_large();
  };
  if (format->shape.ragged) {
    check(byte_starts.empty() ? 0 : byte_starts.back());
  } else if (format->row_bytes > 0 && plan.rows > kMostBytes / format->row_bytes) {
    raise_too_large();
  }
  const BatchShape known = shape();
  std::uint64_t bytes = columns_at();
  for (const auto& column : format->columns) {
    const std::uint64_t more = column->shape(known).bytes;
    check(more);
    check(bytes += aligned(more));
  }
  return bytes;
}

void Batch::ensure_slab(std::uint64_t bytes) {
  try {
    slab.ensure(bytes);
  } catch (const std::bad_alloc&) {
    raise_no_memory(*this);
  }
}

void Batch::check_rows() const {
  if (plan.rows > kMostBytes / sizeof(Row)) raise_too_large();
}

void Batch::raise_too_large() const {
  const std::string records =
      format->shape.ragged ? "" : fmt::format(" of {} records", with_commas(format->shape.length));
  raise(ErrorKind::InvalidArgument, "no memory for a batch of {} rows{}: {}", with_commas(plan.rows), records,
        advice(*this));
}

void raise_no_memory(const Batch& batch) {
  const bool is_known = !batch.format->shape.ragged || batch.starts.size() == batch.plan.rows + 1;
  raise(ErrorKind::InvalidArgument, "no memory for a batch of {} rows{}: {}", with_commas(batch.plan.rows),
        is_known ? fmt::format(", {} bytes", with_commas(batch.needed_bytes())) : "", advice(batch));
}

std::uint64_t Batch::bounded_bytes() const {
  const std::uint64_t bytes = needed_bytes();
  if (bytes <= most_bytes) return bytes;
  raise_too_long(format->source->info(), std::span(rows).first(plan.valid), bytes, most_bytes);
}

std::uint64_t Batch::held_bytes() const noexcept {
  std::uint64_t bytes = slab.bytes();
  for (const Row& row : rows) bytes += row.arena.capacity_bytes();
  return bytes;
}

void Batch::prepare_rows() {
  starts.clear();
  byte_starts.clear();
  longest = 0;
  if (rows.size() < plan.rows) rows.resize(plan.rows);
  bind_arenas(std::span(rows).first(plan.rows), most_bytes, bound);
  const BatchFormat* held = format;
  for (std::uint64_t i = 0; i < plan.valid; ++i) {
    const BatchFormat& own = row_format(i);
    if (&own != format && &own != held && !format->holds(own)) {
      raise(ErrorKind::InvalidArgument, "sources {} and {} meet in one batch, but their rows differ in shape",
            format - formats->data(), picks[i].source);
    }
    held = &own;
    rows[i].records = nullptr;
    prepare_row(i);
  }
  for (std::uint64_t i = plan.valid; i < plan.rows; ++i) rows[i].spans.clear();
}

void Batch::prepare_row(std::uint64_t i) {
  rows[i].restart(picks[i].index, format->shape.length);
  rows[i].epoch = picks[i].epoch;
  rows[i].slice = row_format(i).slice.get();
}

void Batch::measure() {
  starts.assign(plan.rows + 1, 0);
  byte_starts.assign(plan.rows + 1, 0);
  for (std::uint64_t i = 0; i < plan.rows; ++i) {
    const std::uint64_t length = i < plan.valid ? rows[i].length : 0;
    longest = std::max(longest, length);
    const std::uint64_t record_bytes = i < plan.valid ? row_format(i).stored_record_bytes : 0;
    constexpr ErrorKind kKind = ErrorKind::InvalidArgument;
    starts[i + 1] = checked_add(starts[i], length, "records of a batch of documents", kKind);
    byte_starts[i + 1] = checked_add(byte_starts[i], checked_mul(length, record_bytes, "bytes of a document", kKind),
                                     "bytes of a batch of documents", kKind);
  }
}

void Batch::place() {
  const BatchShape known = shape();
  records_at = aligned(format->lead_bytes);
  std::uint64_t at = columns_at();
  arrays.clear();
  for (const auto& column : format->columns) {
    ArrayShape array = column->shape(known);
    const std::uint64_t bytes = aligned(array.bytes);
    arrays.push_back({array.in_place ? records_at : at, std::move(array)});
    at += bytes;
  }
  for (std::uint64_t i = 0; i < plan.valid; ++i) rows[i].records = row_records(i);
  if (plan.valid < plan.rows) clear_padding();
}

void Batch::clear_padding() {
  if (!format->shape.ragged) {
    std::memset(row_records(plan.valid) - format->lead_bytes, 0, (plan.rows - plan.valid) * format->row_bytes);
  }
  const BatchShape known = shape();
  for (std::size_t c = 0; c < arrays.size(); ++c) {
    format->columns[c]->fill_padding(known, slab.data() + arrays[c].at);
  }
}

void Batch::adopt_row(std::uint64_t i) {
  Row& row = rows[i];
  std::swap(row, *fetched[i]);
  std::byte* const read = std::exchange(row.records, row_records(i));
  const BatchFormat& own = row_format(i);
  const std::uint64_t lead = own.shape.lead * own.stored_record_bytes;
  const std::uint64_t bytes = lead + (row.length + own.shape.tail) * own.stored_record_bytes;
  if (bytes > 0) std::memcpy(row.records - lead, read - lead, bytes);
}

void Batch::finish_row(std::uint64_t i) {
  const BatchFormat& own = row_format(i);
  Row& row = rows[i];
  row.number = i;
  row.begin = format->shape.ragged ? starts[i] : i * row.length;
  row.epoch = picks[i].epoch;
  row.source = own.source.get();
  if (has_spans(own.wanted)) own.source->spans(row, row.spans);
  fill_columns(own, row, i);
}

void Batch::fill_columns(const BatchFormat& own, Row& row, std::uint64_t i) {
  const BatchShape known = shape();
  for (std::size_t c = 0; c < arrays.size(); ++c) {
    std::byte* const out = slab.data() + arrays[c].at;
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

void Batch::finish() {
  const BatchShape known = shape();
  for (std::size_t c = 0; c < arrays.size(); ++c) {
    BatchView view{known, slab.data() + arrays[c].at, arrays[c].shape};
    format->columns[c]->finish(view);
  }
}

LateArray::LateArray(const Batch& batch, const FieldSpec& spec) : batch_(batch), columns_(batch.formats->size()) {
  const auto make = [&](const BatchFormat& format) {
    auto& column = columns_[static_cast<std::size_t>(&format - batch.formats->data())];
    if (!column) column = make_column(spec, format.source->info(), false);
    return column;
  };
  shape_ = make(*batch.format)->shape(batch.shape());
  for (std::uint64_t i = 0; i < batch.plan.valid; ++i) make(batch.row_format(i));
}

void LateArray::write(std::byte* out) const {
  const BatchShape known = batch_.shape();
  for (std::uint64_t i = 0; i < batch_.plan.valid; ++i) {
    columns_[batch_.picks[i].source]->fill_row(batch_.rows[i], known, out);
  }
  const auto padding = static_cast<std::size_t>(batch_.format - batch_.formats->data());
  columns_[padding]->fill_padding(known, out);
}

}  // namespace penstock
