#include "core/base/align.h"
#include "core/base/checked.h"
#include "core/base/error.h"
#include "core/columns/cells/forms.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace penstock::cells {
namespace {

// Row i writes its genes and values where its records would lie, and how many there are to offsets[i + 1]. finish()
// makes offsets of the counts, and moves rows together if genes were left out.
class CsrColumn final : public Column {
 public:
  CsrColumn(CellSpecPtr cells, CsrSpec spec, const SourceInfo& source)
      : reader_(std::move(cells), source, Values::Any),
        index_{'i', spec.wide_index ? 8U : 4U},
        value_{'f', spec.double_value ? 8U : 4U},
        gene_run_(find_cast_run(reader_.gene_type(), index_)),
        value_run_(find_cast_run(reader_.value_type(), value_)) {
    if (!source.shape.ragged) raise(ErrorKind::InvalidArgument, "cells are documents, not windows");
  }

  [[nodiscard]] ArrayShape shape(const BatchShape& batch) const override {
    constexpr ErrorKind kKind = ErrorKind::InvalidArgument;
    if (!is_wide() && batch.records > INT32_MAX) {
      raise(kKind, "a batch of {} records: offsets of int32 count at most {}: use index=\"int64\", or a smaller batch",
            with_commas(batch.records), with_commas(INT32_MAX));
    }
    const std::uint64_t largest = std::max(index_.bytes, value_.bytes);
    static_cast<void>(checked_mul(batch.records, 2 * largest, "bytes of a column", kKind));
    const std::uint64_t end = offsets_at(batch) + (batch.rows + 1) * index_.bytes;
    return {.type = index_,
            .dims = {batch.records},
            .bytes = end,
            .further = {{value_, {batch.records}, values_at(batch)}, {index_, {batch.rows + 1}, offsets_at(batch)}}};
  }

  void fill_row(const Row& row, const BatchShape& batch, std::byte* out) const override {
    std::byte* const genes = out + row.begin * index_.bytes;
    std::byte* const values = out + values_at(batch) + row.begin * value_.bytes;
    std::uint64_t count = 0;
    if (reader_.is_plain()) {
      count = reader_.copy(row, genes, gene_run_, is_wide(), values, value_run_, value_.bytes == 8);
    } else {
      const Cell cell = reader_.read(row);
      count = cell.genes.size();
      write(row, cell, genes, values);
    }
    set_offset(out + offsets_at(batch), row.number + 1, count);
  }

  void fill_padding(const BatchShape& batch, std::byte* out) const override {
    for (std::uint64_t i = batch.valid; i < batch.rows; ++i) set_offset(out + offsets_at(batch), i + 1, 0);
  }

  void finish(BatchView& batch) const override {
    std::byte* const offsets = batch.out + offsets_at(batch.shape);
    std::byte* const values = batch.out + values_at(batch.shape);
    set_offset(offsets, 0, 0);
    std::uint64_t end = 0;
    for (std::uint64_t i = 0; i < batch.shape.rows; ++i) {
      const std::uint64_t begin = batch.shape.starts[i];
      const std::uint64_t count = offset(offsets, i + 1);
      if (begin != end) {
        std::memmove(batch.out + end * index_.bytes, batch.out + begin * index_.bytes, count * index_.bytes);
        std::memmove(values + end * value_.bytes, values + begin * value_.bytes, count * value_.bytes);
      }
      end += count;
      set_offset(offsets, i + 1, end);
    }
    batch.array.dims[0] = end;
    batch.array.further[0].dims[0] = end;
  }

 private:
  [[nodiscard]] bool is_wide() const noexcept { return index_.bytes == 8; }
  [[nodiscard]] std::uint64_t values_at(const BatchShape& batch) const noexcept {
    return align_up(batch.records * index_.bytes, kCacheLine);
  }
  [[nodiscard]] std::uint64_t offsets_at(const BatchShape& batch) const noexcept {
    return values_at(batch) + align_up(batch.records * value_.bytes, kCacheLine);
  }

  void set_offset(std::byte* offsets, std::uint64_t i, std::uint64_t value) const noexcept {
    if (is_wide()) {
      reinterpret_cast<std::int64_t*>(offsets)[i] = static_cast<std::int64_t>(value);
    } else {
      reinterpret_cast<std::int32_t*>(offsets)[i] = static_cast<std::int32_t>(value);
    }
  }
  [[nodiscard]] std::uint64_t offset(const std::byte* offsets, std::uint64_t i) const noexcept {
    return is_wide() ? static_cast<std::uint64_t>(reinterpret_cast<const std::int64_t*>(offsets)[i])
                     : static_cast<std::uint64_t>(reinterpret_cast<const std::int32_t*>(offsets)[i]);
  }

  void write(const Row& row, const Cell& cell, std::byte* genes, std::byte* values) const {
    if (is_wide()) {
      std::copy(cell.genes.begin(), cell.genes.end(), reinterpret_cast<std::int64_t*>(genes));
    } else {
      if (!cell.genes.empty() && cell.genes.back() > INT32_MAX) {
        refuse_cell(row, fmt::format("gene {} does not fit int32: use index=\"int64\"", cell.genes.back()));
      }
      std::copy(cell.genes.begin(), cell.genes.end(), reinterpret_cast<std::int32_t*>(genes));
    }
    if (value_.bytes == 8) {
      std::copy(cell.values.begin(), cell.values.end(), reinterpret_cast<double*>(values));
    } else {
      std::transform(cell.values.begin(), cell.values.end(), reinterpret_cast<float*>(values),
                     [](double value) { return static_cast<float>(value); });
    }
  }

  CellReader reader_;
  ScalarType index_;
  ScalarType value_;
  CastRun gene_run_;
  CastRun value_run_;
};

class CsrMaker final : public ColumnMaker {
 public:
  CsrMaker(CellSpecPtr cells, CsrSpec spec) : cells_(std::move(cells)), spec_(spec) {}
  [[nodiscard]] std::shared_ptr<const Column> make(const SourceInfo& source) const override {
    return std::make_shared<CsrColumn>(cells_, spec_, source);
  }
  [[nodiscard]] Parts parts() const noexcept override { return Parts::Records; }

 private:
  CellSpecPtr cells_;
  CsrSpec spec_;
};

}  // namespace

std::shared_ptr<const ColumnMaker> make_csr(CellSpecPtr cells, CsrSpec spec) {
  return std::make_shared<CsrMaker>(std::move(cells), spec);
}

}  // namespace penstock::cells
