#include "core/base/checked.h"
#include "core/base/error.h"
#include "core/columns/cells/forms.h"

#include <cstring>
#include <utility>
#include <vector>

namespace penstock::cells {
namespace {

// Rows of so many bytes are made in memory of the thread, which stays in its cache and has all zeros between rows, and
// streamed from there: writing zeros and then values to the batch itself costs twice as much.
constexpr std::uint64_t kLeastStreamed = 64U << 10;
constexpr std::uint64_t kMostStreamed = 1U << 20;

template <typename T>
void scatter(const Cell& cell, std::byte* out) {
  T* const row = reinterpret_cast<T*>(out);
  for (std::size_t i = 0; i < cell.genes.size(); ++i) row[cell.genes[i]] = static_cast<T>(cell.values[i]);
}

void clear(const Cell& cell, std::uint32_t value_bytes, std::byte* row) {
  for (const std::uint32_t gene : cell.genes) std::memset(row + std::uint64_t{gene} * value_bytes, 0, value_bytes);
}

std::byte* zeros_of_thread() {
  static thread_local std::vector<double> zeros(kMostStreamed / sizeof(double));
  return reinterpret_cast<std::byte*>(zeros.data());
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
    if (row_bytes_ >= kLeastStreamed && row_bytes_ <= kMostStreamed) return stream(row, first);
    std::memset(first, 0, row_bytes_);
    if (value_.bytes == 4 && reader_.scatter(row, reinterpret_cast<float*>(first))) return;
    write(reader_.read(row), first);
  }
  void fill_padding(const BatchShape& batch, std::byte* out) const override {
    std::memset(out + batch.valid * row_bytes_, 0, (batch.rows - batch.valid) * row_bytes_);
  }

 private:
  void write(const Cell& cell, std::byte* row) const {
    value_.bytes == 8 ? scatter<double>(cell, row) : scatter<float>(cell, row);
  }

  void stream(const Row& row, std::byte* to) const {
    std::byte* const made = zeros_of_thread();
    auto* const floats = reinterpret_cast<float*>(made);
    bool is_scattered = false;
    try {
      is_scattered = value_.bytes == 4 && reader_.scatter(row, floats);
    } catch (...) {
      reader_.clear(row, floats);
      throw;
    }
    Cell cell;
    if (!is_scattered) write(cell = reader_.read(row), made);
    kernels().stream(made, row_bytes_, to);
    if (is_scattered) {
      reader_.clear(row, floats);
    } else {
      clear(cell, value_.bytes, made);
    }
  }

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

}  // namespace penstock::cells
