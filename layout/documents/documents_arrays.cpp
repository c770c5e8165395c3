// Documents of field arrays: where each lies is in memory, its fields are read beside each other, and put in the order
// of genes where the file has them otherwise.
#include "core/base/error.h"
#include "core/rows/cast_runs.h"
#include "layout/dataset.h"
#include "layout/foreign/field_arrays.h"
#include "layout/reading/reads.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace penstock::layout {
namespace {

constexpr std::uint64_t kGeneBytes = sizeof(std::uint32_t);
constexpr std::uint64_t kLargestExact = std::uint64_t{1} << 53;  // of the integers that are doubles

// Which document a row is; in its arena.
struct FoundRow {
  std::uint64_t shard = 0;
  std::uint64_t number = 0;              // in the shard
  const std::byte* raw_genes = nullptr;  // as they are stored, where the row has them otherwise
  const std::byte* raw_values = nullptr;
};

// Whether what is stored is what is given out: a gene below 0 is then one beyond all that there are.
bool is_as_stored(const FieldArray& field) {
  return field.stored == field.given || (field.stored.bytes == field.given.bytes && field.given.kind == 'u');
}

class ArrayDocuments final : public Source {
 public:
  explicit ArrayDocuments(DatasetPtr dataset);

  [[nodiscard]] const SourceInfo& info() const override { return info_; }
  bool plan(Row& row, unsigned round, Parts wanted, Reads& out) const override;
  void spans(const Row& row, SpanTable& out) const override;
  [[nodiscard]] std::int64_t first_record(const Row& row, std::uint64_t index) const override;
  [[nodiscard]] Place place_of(std::uint64_t index) const override;

 private:
  [[nodiscard]] FoundRow find(std::uint64_t index) const;
  void plan_records(Row& row, FoundRow& found, Reads& out) const;
  void finish(Row& row, const FoundRow& found) const;
  void sort(Row& row, const FoundRow& found) const;
  [[noreturn]] void refuse(const FoundRow& found, const FieldArray& field, const char* what) const;

  DatasetPtr dataset_;
  std::uint64_t value_bytes_;
  SourceInfo info_;
};

ArrayDocuments::ArrayDocuments(DatasetPtr dataset)
    : dataset_(std::move(dataset)), value_bytes_(dataset_->schema.leaves()[1].item_bytes) {
  info_ = info_of(*dataset_, dataset_->span_count());
  info_.shape.ragged = true;
  info_.fields_apart = true;
  info_.identity.view = R"({"kind":"documents"})";
}

FoundRow ArrayDocuments::find(std::uint64_t index) const {
  const std::uint64_t shard = Dataset::shard_of(dataset_->span_starts, index);
  return {shard, index - dataset_->span_starts[shard]};
}

std::int64_t ArrayDocuments::first_record(const Row& row, std::uint64_t /*index*/) const {
  const FoundRow& found = *static_cast<const FoundRow*>(row.state);
  const std::uint64_t first = dataset_->shards[found.shard].arrays->starts[found.number];
  return static_cast<std::int64_t>(dataset_->record_starts[found.shard] + first);
}

bool ArrayDocuments::plan(Row& row, unsigned round, Parts wanted, Reads& out) const {
  if (round == 0) {
    auto* const found = row.arena.make<FoundRow>(find(row.index));
    row.state = found;
    const Shard& shard = dataset_->shards[found->shard];
    const std::vector<std::uint64_t>& starts = shard.arrays->starts;
    row.length = starts[found->number + 1] - starts[found->number];
    if (row.length > 0) {
      check_records_fit(row, shard.stream, shard.arrays->genes.place(starts[found->number]),
                        row.length * info_.stored_record_bytes);
    }
    return row.measured = true;
  }
  if (!has(wanted, Parts::Records) || row.length == 0) return false;
  FoundRow& found = *static_cast<FoundRow*>(row.state);
  if (round == 1) {
    plan_records(row, found, out);
    return true;
  }
  finish(row, found);
  return false;
}

// Chunks that lie one behind the other in the file are one read.
void plan_field(const File& file, const FieldArray& field, std::uint64_t first, std::uint64_t count, std::byte* to,
                Reads& out) {
  const std::uint64_t item = field.stored.bytes;
  while (count > 0) {
    std::uint64_t chunk = first / field.chunk_values;
    const std::uint64_t inside = first % field.chunk_values;
    const std::uint64_t begin = field.chunks[chunk] + inside * item;
    std::uint64_t part = std::min(count, field.chunk_values - inside);
    while (part < count && field.chunks[chunk + 1] == field.chunks[chunk] + field.chunk_values * item) {
      ++chunk;
      part = std::min(count, part + field.chunk_values);
    }
    plan_read(file, begin, part * item, to, out);
    to += part * item;
    first += part;
    count -= part;
  }
}

void ArrayDocuments::plan_records(Row& row, FoundRow& found, Reads& out) const {
  const Shard& shard = dataset_->shards[found.shard];
  const FieldArrays& arrays = *shard.arrays;
  const std::uint64_t first = arrays.starts[found.number];
  const auto plan = [&](const FieldArray& field, std::byte* to) -> const std::byte* {
    const bool is_same = is_as_stored(field);
    const std::uint64_t bytes = row.length * field.stored.bytes;
    std::byte* const into = is_same ? to : make_room(row, shard.stream, field.place(first), bytes);
    plan_field(shard.stream, field, first, row.length, into, out);
    return is_same ? nullptr : into;
  };
  found.raw_genes = plan(arrays.genes, row.records);
  found.raw_values = plan(arrays.values, row.records + kGeneBytes * row.length);
}

void ArrayDocuments::refuse(const FoundRow& found, const FieldArray& field, const char* what) const {
  raise(ErrorKind::InvalidArgument, "{}: cell {} ({} of this file): {} {}", dataset_->shards[found.shard].stream.path(),
        with_commas(dataset_->span_starts[found.shard] + found.number), with_commas(found.number), field.name, what);
}

// A cast to floats rounds what is larger.
bool is_exact(const std::byte* integers, bool is_signed, std::uint64_t count) {
  bool exact = true;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto value = load_at<std::uint64_t>(integers, i);
    const bool is_negative = is_signed && static_cast<std::int64_t>(value) < 0;
    exact &= (is_negative ? 0 - value : value) <= kLargestExact;
  }
  return exact;
}

bool ascends(const std::byte* genes, std::uint64_t count) {
  bool rising = true;
  for (std::uint64_t i = 1; i < count; ++i) {
    rising &= load_at<std::uint32_t>(genes, i - 1) < load_at<std::uint32_t>(genes, i);
  }
  return rising;
}

void ArrayDocuments::finish(Row& row, const FoundRow& found) const {
  const FieldArrays& arrays = *dataset_->shards[found.shard].arrays;
  const auto convert = [&](const std::byte* raw, const FieldArray& field, std::byte* to) {
    return find_cast_run(field.stored, field.given)(raw, field.stored.bytes, row.length, to, field.given.bytes);
  };
  if (found.raw_genes != nullptr && !convert(found.raw_genes, arrays.genes, row.records)) {
    refuse(found, arrays.genes, "has a number that is none of a gene: below 0, or beyond 32 bits");
  }
  if (found.raw_values != nullptr) {
    const ScalarType stored = arrays.values.stored;
    if (stored.kind != 'f' && stored.bytes == 8 && !is_exact(found.raw_values, stored.kind == 'i', row.length)) {
      refuse(found, arrays.values, "has an integer beyond 2^53, which is given out as float64");
    }
    convert(found.raw_values, arrays.values, row.records + kGeneBytes * row.length);
  }
  if (!ascends(row.records, row.length)) sort(row, found);
}

// Records of one gene stay in their order: that it is there twice is for others to refuse.
void ArrayDocuments::sort(Row& row, const FoundRow& found) const {
  using Numbered = std::pair<std::uint32_t, std::uint32_t>;
  const std::uint64_t count = row.length;
  std::byte* const values = row.records + kGeneBytes * count;
  const Shard& shard = dataset_->shards[found.shard];
  std::byte* const room = make_room(row, shard.stream, shard.arrays->genes.place(shard.arrays->starts[found.number]),
                                    count * (sizeof(Numbered) + value_bytes_));
  auto* const order = reinterpret_cast<Numbered*>(room);
  std::byte* const copy = room + count * sizeof(Numbered);
  for (std::uint64_t i = 0; i < count; ++i) {
    new (order + i) Numbered{load_at<std::uint32_t>(row.records, i), static_cast<std::uint32_t>(i)};
  }
  std::sort(order, order + count);
  std::memcpy(copy, values, count * value_bytes_);
  for (std::uint64_t i = 0; i < count; ++i) {
    std::memcpy(row.records + i * kGeneBytes, &order[i].first, kGeneBytes);
    std::memcpy(values + i * value_bytes_, copy + order[i].second * value_bytes_, value_bytes_);
  }
}

void ArrayDocuments::spans(const Row& row, SpanTable& out) const {
  const FoundRow& found = *static_cast<const FoundRow*>(row.state);
  out.push_back({0, row.length, true, true, 0, static_cast<std::uint32_t>(found.shard), found.number, nullptr, 0});
}

Source::Place ArrayDocuments::place_of(std::uint64_t index) const {
  const FoundRow found = find(index);
  return {dataset_->shards[found.shard].stream.path(), found.number};
}

}  // namespace

std::shared_ptr<const Source> make_array_documents(const DatasetPtr& dataset) {
  return std::make_shared<const ArrayDocuments>(dataset);
}

}  // namespace penstock::layout
