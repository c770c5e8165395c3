#include "core/columns/target_column.h"

#include "core/base/align.h"
#include "core/base/checked.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <string>
#include <utility>

namespace penstock {
namespace {

constexpr std::int64_t kIgnoredTarget = -100;

// Targets that count come in runs, which memchr passes over. The rest is bits instead of a choice: a loop that the
// compiler makes wide for every T.
template <typename T>
void ignore_as(std::byte* labels, const std::byte* mask, std::uint64_t count) {
  constexpr std::uint64_t kBlock = 256;
  auto* const values = reinterpret_cast<T*>(labels);
  std::uint64_t at = 0;
  while (at < count) {
    const void* const found = std::memchr(mask + at, 0, count - at);
    if (found == nullptr) return;
    at = static_cast<std::uint64_t>(static_cast<const std::byte*>(found) - mask);
    const std::uint64_t end = std::min(count, at + kBlock);
    for (; at < end; ++at) {
      const T kept = static_cast<T>(-static_cast<T>(mask[at]));  // all bits, or none
      values[at] = static_cast<T>((values[at] & kept) | (static_cast<T>(kIgnoredTarget) & ~kept));
    }
  }
}

// Target i counts no more where value i is 0. Values lie `stride` bytes apart.
template <typename T>
void keep_nonzero(std::byte* mask, const std::byte* values, std::uint64_t stride, std::uint64_t count) {
  const auto keep = [&](std::uint64_t i, std::uint64_t step) {
    T value;
    std::memcpy(&value, values + i * step, sizeof value);
    mask[i] &= static_cast<std::byte>(value != 0);
  };
  if (stride == sizeof(T)) {  // a loop that the compiler makes wide
    for (std::uint64_t i = 0; i < count; ++i) keep(i, sizeof(T));
  } else {
    for (std::uint64_t i = 0; i < count; ++i) keep(i, stride);
  }
}

// Calls visit(begin, end) for records whose targets are of another document, or of none, in a packed row: from the last
// record of each piece on; of the row's first `count` records.
template <typename Visit>
void each_between_pieces(const Row& row, std::uint64_t count, const Visit& visit) {
  std::uint64_t begin = 0;
  for (const Span& span : row.spans) {
    visit(begin, std::min(span.start, count));
    begin = std::min(span.stop - 1, count);
  }
  visit(begin, count);
}

// How many records at the end of a row are no targets.
std::uint64_t beyond_targets(std::uint64_t shorten) {
  return shorten > 0 ? shorten - 1 : 0;
}

FieldPlace mask_field(const std::string& name, const SourceInfo& source) {
  const Leaf& leaf = find_leaf(source, name);
  if ((leaf.kind != 'b' && !leaf.is_integer()) || !leaf.dims.empty()) {
    raise(ErrorKind::InvalidArgument, "loss_mask: field {} holds no single bool or integer a record", name);
  }
  return {leaf, source};
}

}  // namespace

void ignore_labels(std::byte* labels, std::uint32_t item_bytes, const std::byte* mask, std::uint64_t count) {
  switch (item_bytes) {
    case 1: return ignore_as<std::int8_t>(labels, mask, count);
    case 2: return ignore_as<std::int16_t>(labels, mask, count);
    case 4: return ignore_as<std::int32_t>(labels, mask, count);
    default: return ignore_as<std::int64_t>(labels, mask, count);
  }
}

TargetColumn::TargetColumn(const TargetSpec& spec, const SourceInfo& source)
    : mask_(spec.mask),
      packed_(source.packed_multiple > 0),
      shorten_(spec.shorten),
      places_(source, spec.shorten, spec.padding) {
  if (source.schema.leaves().empty()) {
    raise(ErrorKind::InvalidArgument, "loss_mask and labels of documents without records: there is nothing to mask");
  }
  if (source.shape.ragged ? shorten_ > 0 : shorten_ >= source.shape.length) {
    raise(ErrorKind::InvalidArgument, "loss_mask drops {} records of a row of {}", shorten_, source.shape.length);
  }
  if (packed_ && (spec.cross_document || spec.bounds.by != DocumentBounds::By::Spans)) {
    raise(ErrorKind::InvalidArgument, "{}: targets of packed rows are those of their pieces", source.path);
  }
  if (spec.labels) {
    assert(spec.labels->shorten == shorten_);
    if (!find_leaf(source, spec.labels->field).dims.empty()) {
      raise(ErrorKind::InvalidArgument, "labels: field {} holds no single integer a record", spec.labels->field);
    }
    FieldSpec records = *spec.labels;
    records.skip = 0;
    labels_.emplace(std::move(records), source, false);
    label_bytes_ = spec.labels->type.bytes;
  }
  assert(mask_ || spec.fields.empty());
  for (const std::string& field : spec.fields) fields_.push_back(mask_field(field, source));
  if (!spec.cross_document && !packed_) documents_.emplace(spec.bounds, beyond_targets(shorten_), source);
}

std::uint64_t TargetColumn::mask_at(const BatchShape& batch) const {
  return labels_ ? align_up(places_.count(batch) * label_bytes_, kCacheLine) : 0;
}

ArrayShape TargetColumn::shape(const BatchShape& batch) const {
  constexpr ErrorKind kKind = ErrorKind::InvalidArgument;
  const std::uint64_t count = places_.count(batch);
  const ScalarType mask{'b', 1};
  if (!labels_) return {.type = mask, .dims = places_.dims(batch), .bytes = count};
  ArrayShape array{.type = {'i', label_bytes_},
                   .dims = places_.dims(batch),
                   .bytes = checked_mul(count, label_bytes_, "bytes of a column", kKind)};
  if (!mask_) return array;
  array.further.push_back({mask, places_.dims(batch), mask_at(batch)});
  array.bytes = checked_add(mask_at(batch), count, "bytes of a column", kKind);
  return array;
}

void TargetColumn::fill_row(const Row& row, const BatchShape& batch, std::byte* out) const {
  const RecordArray::Place place = places_.row(batch, row.number);
  const std::uint64_t count = row.length - shorten_;
  const std::uint64_t targets = shorten_ > 0 ? count : std::max<std::uint64_t>(count, 1) - 1;
  std::byte* mask = mask_ ? out + mask_at(batch) + place.begin : nullptr;
  std::byte* labels = labels_ ? out + place.begin * label_bytes_ : nullptr;
  if (labels != nullptr) fill_labels(row, targets, place, labels);
  if (mask != nullptr) fill_mask(row, targets, place, mask);
  if (labels != nullptr && !fields_.empty()) ignore_labels(labels, label_bytes_, mask, place.length);
  const auto leave_out = [&](std::uint64_t begin, std::uint64_t end) {
    if (mask != nullptr) std::memset(mask + place.lead + begin, 0, end - begin);
    if (labels != nullptr) fill_ignored_labels(labels + (place.lead + begin) * label_bytes_, end - begin, label_bytes_);
  };
  if (packed_) each_between_pieces(row, count, leave_out);
  if (!documents_) return;
  documents_->for_each(row, [&](std::uint64_t at, std::uint64_t) {  // few are the first of a document
    if (at > 0) leave_out(at - 1, at);
  });
}

void TargetColumn::fill_labels(const Row& row, std::uint64_t targets, RecordArray::Place place,
                               std::byte* labels) const {
  fill_ignored_labels(labels, place.lead, label_bytes_);
  labels_->cast(row, 1, targets, labels + place.lead * label_bytes_);
  const std::uint64_t end = place.lead + targets;
  fill_ignored_labels(labels + end * label_bytes_, place.length - end, label_bytes_);
}

void TargetColumn::fill_mask(const Row& row, std::uint64_t targets, RecordArray::Place place, std::byte* mask) const {
  std::memset(mask, 0, place.lead);
  std::memset(mask + place.lead, 1, targets);
  const std::uint64_t end = place.lead + targets;
  std::memset(mask + end, 0, place.length - end);
  for (const FieldPlace& field : fields_) {
    with_unsigned(field.item_bytes, [&](auto zero) {
      keep_nonzero<decltype(zero)>(mask + place.lead, field.first(row) + field.stride_bytes, field.stride_bytes,
                                   targets);
    });
  }
}

void TargetColumn::fill_padding(const BatchShape& batch, std::byte* out) const {
  const RecordArray::Place rows = places_.padding_rows(batch);
  if (labels_) fill_ignored_labels(out + rows.begin * label_bytes_, rows.length, label_bytes_);
  if (mask_) std::memset(out + mask_at(batch) + rows.begin, 0, rows.length);
}

}  // namespace penstock
