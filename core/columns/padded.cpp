#include "core/columns/padded.h"

#include "core/base/align.h"
#include "core/base/checked.h"
#include "core/columns/leaf_column.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace penstock {
namespace {

constexpr ErrorKind kKind = ErrorKind::InvalidArgument;
constexpr ScalarType kInt64{'i', 8};

// `count` values of `value`'s size and bytes.
void fill(std::byte* out, std::uint64_t count, const std::vector<std::byte>& value) {
  if (count == 0) return;
  std::memcpy(out, value.data(), value.size());
  // Doubles what is there.
  const std::uint64_t bytes = count * value.size();
  for (std::uint64_t done = value.size(); done < bytes;) {
    const std::uint64_t more = std::min(done, bytes - done);
    std::memcpy(out + done, out, more);
    done += more;
  }
}

void fill_int64(std::byte* out, std::uint64_t count, std::int64_t value) {
  std::fill_n(reinterpret_cast<std::int64_t*>(out), count, value);
}

Dims dims_of(std::uint64_t rows, std::uint64_t length, const Leaf& leaf) {
  Dims dims;
  dims.push_back(rows);
  dims.push_back(length);
  for (const std::uint64_t dim : leaf.dims) dims.push_back(dim);
  return dims;
}

struct PaddedLeaf {
  Leaf leaf;
  PaddedField field;
  std::uint64_t values = 1;        // in a record
  std::uint64_t record_bytes = 0;  // of the array
};

class PaddedColumn final : public Column {
 public:
  PaddedColumn(const PaddedSpec& spec, const SourceInfo& source)
      : padding_(spec.padding), places_(source, 0, spec.padding), stride_bytes_(source.stored_record_bytes) {
    if (source.fields_apart)
      raise(kKind,
            "{}: its fields lie apart, which padded batches do not have: use cells() of cells, else windows() or "
            "documents()",
            source.path);
    for (const PaddedField& field : spec.fields) add(field, source);
  }

  [[nodiscard]] ArrayShape shape(const BatchShape& batch) const override {
    const std::uint64_t length = padding_.row_length(batch);
    const std::uint64_t records = places_.count(batch);
    std::uint64_t at = 0;
    std::vector<FurtherArray> arrays;
    const auto append = [&](ScalarType type, Dims dims, std::uint64_t bytes) {
      arrays.push_back({type, std::move(dims), at});
      at = checked_add(
          at, align_up(checked_add(bytes, kCacheLine, "bytes of a padded batch", kKind) - kCacheLine, kCacheLine),
          "bytes of a padded batch", kKind);
    };
    for (const PaddedLeaf& each : leaves_) {
      append(each.field.type, dims_of(batch.rows, length, each.leaf),
             checked_mul(records, each.record_bytes, "bytes of a padded batch", kKind));
    }
    append(kInt64, {batch.rows, length}, checked_mul(records, 8, "bytes of a padded batch", kKind));
    append(kInt64, {batch.rows}, checked_mul(batch.rows, 8, "bytes of a padded batch", kKind));
    ArrayShape shape{.type = arrays[0].type, .dims = arrays[0].dims, .bytes = at};
    shape.further.assign(arrays.begin() + 1, arrays.end());
    return shape;
  }

  void fill_row(const Row& row, const BatchShape& batch, std::byte* out) const override {
    const auto [first, length, begin] = places_.row(batch, row.number);
    const std::uint64_t end = begin + row.length;
    std::byte* at = out;
    for (const PaddedLeaf& each : leaves_) {
      std::byte* const to = at + first * each.record_bytes;
      fill(to, begin * each.values, each.field.padding);
      cast_leaf(each.leaf, row.records, stride_bytes_, row.length, each.field.type, to + begin * each.record_bytes);
      fill(to + end * each.record_bytes, (length - end) * each.values, each.field.padding);
      at = next(at, batch.rows * length * each.record_bytes);
    }
    fill_int64(at + 8 * first, begin, 0);
    fill_int64(at + 8 * (first + begin), row.length, 1);
    fill_int64(at + 8 * (first + end), length - end, 0);
    at = next(at, batch.rows * length * 8);
    fill_int64(at + 8 * row.number, 1, static_cast<std::int64_t>(row.length));
  }

  void fill_padding(const BatchShape& batch, std::byte* out) const override {
    const std::uint64_t length = padding_.row_length(batch);
    const std::uint64_t first = batch.valid * length;
    const std::uint64_t count = (batch.rows - batch.valid) * length;
    std::byte* at = out;
    for (const PaddedLeaf& each : leaves_) {
      fill(at + first * each.record_bytes, count * each.values, each.field.padding);
      at = next(at, batch.rows * length * each.record_bytes);
    }
    fill_int64(at + 8 * first, count, 0);
    at = next(at, batch.rows * length * 8);
    fill_int64(at + 8 * batch.valid, batch.rows - batch.valid, 0);
  }

 private:
  void add(const PaddedField& field, const SourceInfo& source) {
    PaddedLeaf each{find_leaf(source, field.field), field};
    check_cast(each.leaf, field.type);
    each.values = each.leaf.count();
    each.record_bytes = each.values * field.type.bytes;
    leaves_.push_back(std::move(each));
  }

  static std::byte* next(std::byte* at, std::uint64_t bytes) noexcept { return at + align_up(bytes, kCacheLine); }

  const Padding padding_;
  const RecordArray places_;
  const std::uint64_t stride_bytes_;
  std::vector<PaddedLeaf> leaves_;
};

class PaddedMaker final : public ColumnMaker {
 public:
  explicit PaddedMaker(PaddedSpec spec) : spec_(std::move(spec)) {
    const auto check = [](const PaddedField& field) {
      if (field.padding.size() == field.type.bytes) return;
      raise(kKind, "padding of {} bytes for values of {}", field.padding.size(), field.type.bytes);
    };
    for (const PaddedField& field : spec_.fields) check(field);
  }
  [[nodiscard]] std::shared_ptr<const Column> make(const SourceInfo& source) const override {
    return std::make_shared<PaddedColumn>(spec_, source);
  }
  [[nodiscard]] Parts parts() const noexcept override { return Parts::Records; }

 private:
  const PaddedSpec spec_;
};

}  // namespace

std::shared_ptr<const ColumnMaker> make_padded(PaddedSpec spec) {
  return std::make_shared<PaddedMaker>(std::move(spec));
}

}  // namespace penstock
