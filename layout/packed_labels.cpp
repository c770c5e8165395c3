#include "layout/packed_labels.h"

#include "core/base/checked.h"
#include "core/batch/cast.h"
#include "core/batch/leaf_column.h"

#include <algorithm>
#include <utility>

namespace penstock::layout {
namespace {

constexpr std::int64_t kIgnoredLabel = -100;

void fill_ignored(std::byte* out, std::uint64_t count, std::uint32_t item_bytes) {
  switch (item_bytes) {
    case 1: std::fill_n(reinterpret_cast<std::int8_t*>(out), count, static_cast<std::int8_t>(kIgnoredLabel)); break;
    case 2: std::fill_n(reinterpret_cast<std::int16_t*>(out), count, static_cast<std::int16_t>(kIgnoredLabel)); break;
    case 4: std::fill_n(reinterpret_cast<std::int32_t*>(out), count, static_cast<std::int32_t>(kIgnoredLabel)); break;
    default: std::fill_n(reinterpret_cast<std::int64_t*>(out), count, kIgnoredLabel); break;
  }
}

class PackedLabels final : public Column {
 public:
  PackedLabels(const std::string& field, ScalarType type, const SourceInfo& source)
      : leaf_(find_leaf(source, field)), type_(type), stride_bytes_(source.stored_record_bytes) {
    check_cast(leaf_, type_);
    if (source.packed_multiple == 0) raise(ErrorKind::InvalidArgument, "packed labels are of packed rows");
    if (!leaf_.is_integer() || !leaf_.dims.empty()) {
      raise(ErrorKind::InvalidArgument, "labels: field {} holds no single integer a record", leaf_.name);
    }
  }

  [[nodiscard]] ArrayShape shape(const BatchShape& batch) const override {
    constexpr ErrorKind kKind = ErrorKind::InvalidArgument;
    const std::uint64_t records = checked_mul(batch.rows, batch.row_records, "labels", kKind);
    return {.type = type_,
            .dims = {batch.rows, batch.row_records},
            .bytes = checked_mul(records, type_.bytes, "labels", kKind)};
  }

  void fill_row(const Row& row, const BatchShape& batch, std::byte* out) const override {
    std::byte* const to = out + row.number * batch.row_records * type_.bytes;
    std::uint64_t end = 0;
    for (const Span& span : row.spans) {
      fill_ignored(to + end * type_.bytes, span.start - end, type_.bytes);
      cast_leaf(leaf_, row.records + (span.start + 1) * stride_bytes_, stride_bytes_, span.stop - span.start - 1, type_,
                to + span.start * type_.bytes);
      end = span.stop - 1;
    }
    fill_ignored(to + end * type_.bytes, row.length - end, type_.bytes);
  }

  void fill_padding(const BatchShape& batch, std::byte* out) const override {
    fill_ignored(out + batch.valid * batch.row_records * type_.bytes, (batch.rows - batch.valid) * batch.row_records,
                 type_.bytes);
  }

 private:
  const Leaf leaf_;
  const ScalarType type_;
  const std::uint64_t stride_bytes_;
};

class PackedLabelsMaker final : public ColumnMaker {
 public:
  PackedLabelsMaker(std::string field, ScalarType type) : field_(std::move(field)), type_(type) {
    if (type.kind == 'i') return;
    raise(ErrorKind::InvalidArgument, "labels are {}: they must be signed integers, since padding is {}", type.str(),
          kIgnoredLabel);
  }
  [[nodiscard]] std::shared_ptr<const Column> make(const SourceInfo& source) const override {
    return std::make_shared<PackedLabels>(field_, type_, source);
  }
  [[nodiscard]] Parts parts() const noexcept override { return Parts::Records | Parts::Spans; }

 private:
  const std::string field_;
  const ScalarType type_;
};

}  // namespace

std::shared_ptr<const ColumnMaker> make_packed_labels(std::string field, ScalarType type) {
  return std::make_shared<PackedLabelsMaker>(std::move(field), type);
}

}  // namespace penstock::layout
