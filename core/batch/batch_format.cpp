#include "core/batch/batch_format.h"

#include "core/base/align.h"
#include "core/base/checked.h"
#include "core/columns/column_factory.h"
#include "core/columns/leaf_column.h"
#include "core/columns/sliced_column.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <variant>

namespace penstock {
namespace {

constexpr std::uint64_t kPage = 4096;

// A copy to an address that is, within its page, a few bytes beyond that of its source takes three to four times as
// long (measured on an AMD EPYC: 20 µs instead of 6 for 32 KiB): the processor takes each load to depend on the store
// before. Windows of whole pages with a record more would meet that in every row but the first. So rows lie a cache
// line more apart where they exceed whole pages by less than one; whole records, so that all are as aligned as one is.
std::uint64_t row_stride_bytes(const RowShape& shape, std::uint64_t record_bytes) {
  if (shape.ragged) return 0;
  constexpr ErrorKind kKind = ErrorKind::InvalidArgument;
  const std::uint64_t records = checked_add(checked_add(shape.lead, shape.length, "records of a row", kKind),
                                            shape.tail, "records of a row", kKind);
  if (record_bytes > 0 && records > kMostBatchBytes / record_bytes) {
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
                         const std::shared_ptr<const RowSlice>& slice_,
                         const std::optional<FillInTheMiddleSpec>& middle_)
    : source(std::move(source_)),
      shape(source->info().shape),
      stored_record_bytes(source->info().stored_record_bytes),
      specs(std::move(specs_)),
      wanted(wanted_),
      slice(reading_for(specs, slice_)),
      middle(middle_ ? std::make_shared<const FillInTheMiddle>(*middle_, source->info()) : nullptr),
      lead_bytes(shape.ragged ? 0 : shape.lead * stored_record_bytes),
      row_bytes(row_stride_bytes(shape, stored_record_bytes)) {
  make_columns(*this, is_end_to_end(*this));
  for (const ColumnSpec& spec : specs) wanted = wanted | parts_of(spec);
  if (slice && slice->is_by_documents()) wanted = wanted | Parts::Spans;
  if (middle) wanted = wanted | middle->parts();
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

}  // namespace penstock
