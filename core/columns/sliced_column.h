// SlicedColumn: the part of another column, of fixed rows, that a RowSlice has: [rows, length / n, …] of each of its
// arrays.
//
// A row is made whole in memory of the thread's own and its part copied from there, so no column knows of slices.
// Immutable; any thread.
#pragma once

#include "core/columns/column.h"
#include "core/rows/row_slice.h"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace penstock {

class SlicedColumn final : public Column {
 public:
  /// `whole` has no value but those of records, each row's in its place, and does nothing in finish().
  SlicedColumn(std::shared_ptr<const Column> whole, std::shared_ptr<const RowSlice> slice);

  [[nodiscard]] ArrayShape shape(const BatchShape& batch) const override;
  /// fill_slice() of row.number.
  void fill_row(const Row& row, const BatchShape& batch, std::byte* out) const override;
  void fill_padding(const BatchShape& batch, std::byte* out) const override;
  /// Of `row`, whose number is 0 for the whole column, to row `number` of the arrays.
  void fill_slice(const Row& row, std::uint64_t number, const BatchShape& batch, std::byte* out) const;

 private:
  void copy(const SpanTable& spans, std::uint64_t number, const BatchShape& batch, const std::byte* made,
            const ArrayShape& whole, std::byte* out) const;

  const std::shared_ptr<const Column> whole_;
  const std::shared_ptr<const RowSlice> slice_;
};

}  // namespace penstock
