#include "core/base/checked.h"
#include "core/base/error.h"
#include "layout/cells/forms.h"

#include <cstring>
#include <utility>

namespace penstock::layout {
namespace {

template <typename T>
void scatter(const Cell& cell, std::byte* out) {
  T* const row = reinterpret_cast<T*>(out);
  for (std::size_t i = 0; i < cell.genes.size(); ++i) row[cell.genes[i]] = static_cast<T>(cell.values[i]);
}

class DenseColumn final : public Column {
 public:
  DenseColumn(CellSpecPtr cells, bool double_value, const SourceInfo& source)
      : reader_(std::move(cells), source, Values::Any), value_{'f', double_value ? 8U : 4U} {
    constexpr ErrorKind kKind = ErrorKind::InvalidArgument;
    if (!source.shape.ragged) raise(kKind, "cells are documents, not windows");
    if (!reader_.spec().width) raise(kKind, "Dense needs to know how many genes there are: give genes=");
    width_ = *reader_.spec().width;
    row_bytes_ = checked_mul(width_, value_.bytes, "bytes of a cell", kKind);
  }

  [[nodiscard]] ArrayShape shape(const BatchShape& batch) const override {
    return {.type = value_,
            .dims = {batch.rows, width_},
            .bytes = checked_mul(batch.rows, row_bytes_, "bytes of a column", ErrorKind::InvalidArgument)};
  }
  void fill_row(const Row& row, const BatchShape& /*batch*/, std::byte* out) const override {
    std::byte* const first = out + row.number * row_bytes_;
    std::memset(first, 0, row_bytes_);
    if (value_.bytes == 4 && reader_.scatter(row, reinterpret_cast<float*>(first))) return;
    const Cell cell = reader_.read(row);
    value_.bytes == 8 ? scatter<double>(cell, first) : scatter<float>(cell, first);
  }
  void fill_padding(const BatchShape& batch, std::byte* out) const override {
    std::memset(out + batch.valid * row_bytes_, 0, (batch.rows - batch.valid) * row_bytes_);
  }

 private:
  CellReader reader_;
  ScalarType value_;
  std::uint64_t width_ = 0;
  std::uint64_t row_bytes_ = 0;
};

class DenseMaker final : public ColumnMaker {
 public:
  DenseMaker(CellSpecPtr cells, bool double_value) : cells_(std::move(cells)), double_value_(double_value) {}
  [[nodiscard]] std::shared_ptr<const Column> make(const SourceInfo& source) const override {
    return std::make_shared<DenseColumn>(cells_, double_value_, source);
  }
  [[nodiscard]] Parts parts() const noexcept override { return Parts::Records; }

 private:
  CellSpecPtr cells_;
  bool double_value_;
};

}  // namespace

std::shared_ptr<const ColumnMaker> make_dense(CellSpecPtr cells, bool double_value) {
  return std::make_shared<DenseMaker>(std::move(cells), double_value);
}

}  // namespace penstock::layout
