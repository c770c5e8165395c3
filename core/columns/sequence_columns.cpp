#include "core/columns/sequence_columns.h"

#include "core/base/checked.h"
#include "core/columns/sequences.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

namespace penstock {
namespace {

constexpr ScalarType kInt32{'i', 4};
constexpr std::uint64_t kMostRecords = INT32_MAX;

std::int32_t* ints(std::byte* out) {
  return reinterpret_cast<std::int32_t*>(out);
}

class SequenceColumn : public Column {
 public:
  SequenceColumn(const SequenceSpec& spec, const SourceInfo& source)
      : sequences_(spec.bounds, spec.shorten, source), ragged_(source.shape.ragged), shorten_(spec.shorten) {}

 protected:
  // Of the flattened batch. Throws InvalidArgument where int32 cannot count them.
  [[nodiscard]] std::uint64_t records(const BatchShape& batch) const {
    const std::uint64_t records = batch.ragged ? batch.records
                                               : checked_mul(batch.rows, batch.row_records - shorten_,
                                                             "records of a batch", ErrorKind::InvalidArgument);
    if (records > kMostRecords) {
      raise(ErrorKind::InvalidArgument,
            "a batch of {} records: cu_seqlens, position_ids and document_ids are int32 and count at most {}",
            with_commas(records), with_commas(kMostRecords));
    }
    return records;
  }
  [[nodiscard]] ArrayShape shape_of_records(const BatchShape& batch) const {
    ArrayShape array{.type = kInt32, .bytes = 4 * records(batch)};
    if (!ragged_) array.dims.push_back(batch.rows);
    array.dims.push_back(ragged_ ? batch.records : batch.row_records - shorten_);
    return array;
  }
  // Where row i begins, and row `rows` would, in the flattened batch.
  [[nodiscard]] std::uint64_t begin_of(const BatchShape& batch, std::uint64_t i) const {
    return ragged_ ? batch.starts[i] : i * (batch.row_records - shorten_);
  }
  [[nodiscard]] std::uint64_t begin_of(const Row& row) const {
    return ragged_ ? row.begin : row.number * (row.length - shorten_);
  }

  const Sequences sequences_;
  const bool ragged_;
  const std::uint64_t shorten_;
};

// Row i writes how many sequences it has, and where each ends, from begin_of(i) + 2 i on: room for one a record, and
// for the count and an empty row's only one. finish() moves the ends together, towards the array's begin, over the
// counts.
class BoundsColumn : public SequenceColumn {
 public:
  BoundsColumn(const SequenceSpec& spec, const SourceInfo& source)
      : SequenceColumn(spec, source), max_documents_(spec.max_documents) {
    if (max_documents_ && *max_documents_ > kMostRecords) {
      raise(ErrorKind::InvalidArgument, "max_documents={}: must be at most {}", *max_documents_, kMostRecords);
    }
  }

  [[nodiscard]] ArrayShape shape(const BatchShape& batch) const override {
    const std::uint64_t room = records(batch) + 2 * batch.rows + 1;
    const std::uint64_t wanted = max_documents_ ? *max_documents_ + 1 : room;
    return {.type = kInt32, .dims = {wanted}, .bytes = 4 * std::max(room, wanted)};
  }

  void fill_row(const Row& row, const BatchShape& /*batch*/, std::byte* out) const override {
    const std::uint64_t begin = begin_of(row);
    std::int32_t* const first = ints(out) + begin + 2 * row.number;
    std::int32_t* next = first + 1;
    sequences_.for_each(row,
                        [&](std::uint64_t, std::uint64_t end) { *next++ = static_cast<std::int32_t>(begin + end); });
    *first = static_cast<std::int32_t>(next - first - 1);
  }

  void fill_padding(const BatchShape& batch, std::byte* out) const override {
    for (std::uint64_t i = batch.valid; i < batch.rows; ++i) {
      std::int32_t* const first = ints(out) + begin_of(batch, i) + 2 * i;
      first[0] = ragged_ ? 0 : 1;
      if (!ragged_) first[1] = static_cast<std::int32_t>(begin_of(batch, i + 1));
    }
  }

  void finish(BatchView& batch) const override {
    std::int32_t* const out = ints(batch.out);
    std::uint64_t values = 1;
    for (std::uint64_t i = 0; i < batch.shape.rows; ++i) {
      const std::int32_t* const first = out + begin_of(batch.shape, i) + 2 * i;
      const auto count = static_cast<std::uint64_t>(*first);
      std::memmove(out + values, first + 1, 4 * count);
      values += count;
    }
    out[0] = 0;
    if (!max_documents_) {
      batch.array.dims[0] = values;
      return;
    }
    if (values - 1 > *max_documents_) {
      raise(ErrorKind::InvalidArgument, "cu_seqlens: this batch has {} documents, max_documents is {}",
            with_commas(values - 1), with_commas(*max_documents_));
    }
    std::fill(out + values, out + *max_documents_ + 1, out[values - 1]);
  }

 private:
  const std::optional<std::uint64_t> max_documents_;
};

// Row i writes its longest to place i; finish() takes the longest of them. With max_documents a fixed row is what
// counts, so that it is one number in all batches.
class LongestColumn : public SequenceColumn {
 public:
  LongestColumn(const SequenceSpec& spec, const SourceInfo& source)
      : SequenceColumn(spec, source), is_row_(spec.max_documents && !source.shape.ragged) {}

  [[nodiscard]] ArrayShape shape(const BatchShape& batch) const override {
    static_cast<void>(records(batch));  // checks that int32 counts them
    return {.type = kInt32, .bytes = 4 * std::max<std::uint64_t>(batch.rows, 1)};
  }
  void fill_row(const Row& row, const BatchShape& /*batch*/, std::byte* out) const override {
    std::uint64_t longest = 0;
    if (is_row_) {
      longest = row.length - shorten_;
    } else {
      sequences_.for_each(row,
                          [&](std::uint64_t begin, std::uint64_t end) { longest = std::max(longest, end - begin); });
    }
    ints(out)[row.number] = static_cast<std::int32_t>(longest);
  }
  void fill_padding(const BatchShape& batch, std::byte* out) const override {
    const std::uint64_t length = ragged_ ? 0 : batch.row_records - shorten_;
    std::fill(ints(out) + batch.valid, ints(out) + batch.rows, static_cast<std::int32_t>(length));
  }
  void finish(BatchView& batch) const override {
    std::int32_t* const out = ints(batch.out);
    const std::int32_t* const longest = std::max_element(out, out + batch.shape.rows);
    *out = batch.shape.rows == 0 ? 0 : *longest;
  }

 private:
  const bool is_row_;
};

class PositionsColumn : public SequenceColumn {
 public:
  using SequenceColumn::SequenceColumn;

  [[nodiscard]] ArrayShape shape(const BatchShape& batch) const override { return shape_of_records(batch); }
  void fill_row(const Row& row, const BatchShape& /*batch*/, std::byte* out) const override {
    std::int32_t* const first = ints(out) + begin_of(row);
    sequences_.for_each(row, [&](std::uint64_t begin, std::uint64_t end) { std::iota(first + begin, first + end, 0); });
  }
  void fill_padding(const BatchShape& batch, std::byte* out) const override {
    for (std::uint64_t i = batch.valid; i < batch.rows; ++i) {
      std::iota(ints(out) + begin_of(batch, i), ints(out) + begin_of(batch, i + 1), 0);
    }
  }
};

// A row counts its own sequences from 0. An array of ragged rows has no axis of rows: there finish() adds the sequences
// of the rows before. In packed rows padding is -1.
class DocumentsColumn : public SequenceColumn {
 public:
  DocumentsColumn(const SequenceSpec& spec, const SourceInfo& source)
      : SequenceColumn(spec, source),
        packed_(source.packed_multiple > 0 && spec.bounds.by == DocumentBounds::By::Spans) {}

  [[nodiscard]] ArrayShape shape(const BatchShape& batch) const override { return shape_of_records(batch); }
  void fill_row(const Row& row, const BatchShape& /*batch*/, std::byte* out) const override {
    std::int32_t* const first = ints(out) + begin_of(row);
    std::int32_t number = 0;
    sequences_.for_each(
        row, [&](std::uint64_t begin, std::uint64_t end) { std::fill(first + begin, first + end, number++); });
    if (!packed_) return;
    const std::uint64_t count = row.length - shorten_;
    std::uint64_t end = 0;
    for (const Span& span : row.spans) {
      std::fill(first + end, first + std::min(span.start, count), -1);
      end = std::min(span.stop, count);
    }
    std::fill(first + end, first + count, -1);
  }
  void fill_padding(const BatchShape& batch, std::byte* out) const override {
    std::fill(ints(out) + begin_of(batch, batch.valid), ints(out) + begin_of(batch, batch.rows), -1);
  }
  void finish(BatchView& batch) const override {
    if (!ragged_) return;
    std::int32_t before = 0;
    for (std::uint64_t i = 0; i < batch.shape.valid; ++i) {
      std::int32_t* const first = ints(batch.out) + begin_of(batch.shape, i);
      std::int32_t* const last = ints(batch.out) + begin_of(batch.shape, i + 1);
      if (before > 0) std::for_each(first, last, [before](std::int32_t& number) { number += before; });
      before = first == last ? before + 1 : last[-1] + 1;
    }
  }

 private:
  const bool packed_;
};

}  // namespace

Sequences::Sequences(const DocumentBounds& bounds, std::uint64_t shorten, const SourceInfo& source)
    : shorten_(shorten), by_(bounds.by), value_(bounds.value) {
  if (source.schema.leaves().empty()) {
    raise(ErrorKind::InvalidArgument, "sequences of documents without records: there is nothing to count");
  }
  if (source.shape.ragged ? shorten_ > 0 : shorten_ >= source.shape.length) {
    raise(ErrorKind::InvalidArgument, "sequences drop {} records of a row of {}", shorten_, source.shape.length);
  }
  packed_multiple_ = source.packed_multiple;
  if (by_ == DocumentBounds::By::Spans) return;
  const char* const name = by_ == DocumentBounds::By::EndValue ? "end_of_document" : "begin_of_document";
  const Leaf& leaf = find_leaf(source, bounds.field);
  if (!leaf.is_integer() || !leaf.dims.empty()) {
    raise(ErrorKind::InvalidArgument, "{}: field {} holds no single integer a record", name, leaf.name);
  }
  const unsigned bits = 8 * leaf.item_bytes - (leaf.kind == 'i' ? 1 : 0);
  if (value_ < 0 || (bits < 63 && value_ >> bits != 0)) {
    raise(ErrorKind::InvalidArgument, "{}={}: no value of field {}, {}", name, value_, leaf.name,
          ScalarType{leaf.kind, leaf.item_bytes}.name());
  }
  place_ = FieldPlace(leaf, source);
}

std::shared_ptr<const Column> make_sequence_column(const SequenceSpec& spec, const SourceInfo& source) {
  switch (spec.kind) {
    case SequenceSpec::Kind::Bounds: return std::make_shared<BoundsColumn>(spec, source);
    case SequenceSpec::Kind::Longest: return std::make_shared<LongestColumn>(spec, source);
    case SequenceSpec::Kind::Positions: return std::make_shared<PositionsColumn>(spec, source);
    case SequenceSpec::Kind::Documents: break;
  }
  return std::make_shared<DocumentsColumn>(spec, source);
}

}  // namespace penstock
