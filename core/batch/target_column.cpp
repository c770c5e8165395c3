#include "core/batch/target_column.h"

#include "core/base/align.h"
#include "core/base/checked.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <string>
#include <utility>

namespace penstock {
namespace {

constexpr std::int64_t kIgnoredLabel = -100;

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
      values[at] = static_cast<T>((values[at] & kept) | (static_cast<T>(kIgnoredLabel) & ~kept));
    }
  }
}

void ignore_label(std::byte* label, std::uint32_t item_bytes) {
  std::memcpy(label, &kIgnoredLabel, item_bytes);  // little-endian: its low bytes are the narrower -100
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
    : mask_(spec.mask), ragged_(source.shape.ragged), shorten_(spec.shorten) {
  if (source.schema.leaves().empty()) {
    raise(ErrorKind::InvalidArgument, "loss_mask and labels of documents without records: there is nothing to mask");
  }
  if (ragged_ ? shorten_ > 0 : shorten_ >= source.shape.length) {
    raise(ErrorKind::InvalidArgument, "loss_mask drops {} records of a row of {}", shorten_, source.shape.length);
  }
  if (spec.labels) {
    assert(spec.labels->shorten == shorten_);
    labels_.emplace(*spec.labels, source, false);
    label_bytes_ = spec.labels->type.bytes;
  }
  assert(mask_ || spec.fields.empty());
  for (const std::string& field : spec.fields) fields_.push_back(mask_field(field, source));
  if (!spec.cross_document) documents_.emplace(spec.bounds, beyond_targets(shorten_), source);
}

std::uint64_t TargetColumn::mask_at(const BatchShape& batch) const {
  return labels_ ? align_up(batch.records_but(shorten_) * label_bytes_, kCacheLine) : 0;
}

ArrayShape TargetColumn::shape(const BatchShape& batch) const {
  const std::uint64_t bytes = batch.records_but(shorten_);
  ArrayShape mask{.type = {'b', 1}, .bytes = bytes};
  if (!ragged_) mask.dims.push_back(batch.rows);
  mask.dims.push_back(ragged_ ? batch.records : batch.row_records - shorten_);
  if (!labels_) return mask;
  ArrayShape array = labels_->shape(batch);
  if (!mask_) return array;
  array.further.push_back({mask.type, std::move(mask.dims), mask_at(batch)});
  array.bytes = checked_add(mask_at(batch), bytes, "bytes of a column", ErrorKind::InvalidArgument);
  return array;
}

void TargetColumn::fill_row(const Row& row, const BatchShape& batch, std::byte* out) const {
  const std::uint64_t count = row.length - shorten_;
  const std::uint64_t begin = ragged_ ? row.begin : row.number * count;
  std::byte* const mask = mask_ ? out + mask_at(batch) + begin : nullptr;
  std::byte* const labels = labels_ ? out + begin * label_bytes_ : nullptr;
  if (labels != nullptr) labels_->fill_row(row, batch, out);
  if (mask != nullptr) fill_mask(row, mask, count);
  if (labels != nullptr && !fields_.empty()) ignore_labels(labels, label_bytes_, mask, count);
  if (!documents_) return;
  documents_->for_each(row, [&](std::uint64_t at, std::uint64_t) {  // few are the first of a document
    if (at == 0) return;
    if (mask != nullptr) mask[at - 1] = std::byte{0};
    if (labels != nullptr) ignore_label(labels + (at - 1) * label_bytes_, label_bytes_);
  });
}

void TargetColumn::fill_mask(const Row& row, std::byte* mask, std::uint64_t count) const {
  const std::uint64_t targets = shorten_ > 0 ? count : std::max<std::uint64_t>(count, 1) - 1;
  std::memset(mask, 1, targets);
  std::memset(mask + targets, 0, count - targets);
  for (const FieldPlace& field : fields_) {
    with_unsigned(field.item_bytes, [&](auto zero) {
      keep_nonzero<decltype(zero)>(mask, field.first(row) + field.stride_bytes, field.stride_bytes, targets);
    });
  }
}

void TargetColumn::fill_padding(const BatchShape& batch, std::byte* out) const {
  if (ragged_) return;  // padding rows are empty
  if (labels_) labels_->fill_padding(batch, out);
  const std::uint64_t row_records = batch.row_records - shorten_;
  if (mask_) std::memset(out + mask_at(batch) + batch.valid * row_records, 0, (batch.rows - batch.valid) * row_records);
}

}  // namespace penstock
