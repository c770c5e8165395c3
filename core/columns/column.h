// Column: the seam between rows and the arrays of a batch. A column is one array of every batch, or several that are
// made together: the values of a field (leaf_column.h), what is computed from rows and spans (sequence_columns.h), or
// what a ColumnMaker makes (column_maker.h).
//
// A column is made for one source and immutable; any thread. A batch asks for shape() before any row is filled and
// gives the array its place. A native thread calls fill_row() for each row right after the row's last read, while the
// row is in that core's cache; rows come in any order, several at once, each to a part of the array that is its own.
// finish() runs once, after the last row, on the thread that ended it.
#pragma once

#include "core/rows/scalar_type.h"
#include "core/rows/source.h"

#include <boost/container/small_vector.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace penstock {

/// What is known of a batch before its rows are filled. Its records, end to end, are the flattened batch: fixed rows of
/// `row_records` each, padding rows too; or ragged rows, of which padding rows are empty.
struct BatchShape {
  std::uint64_t rows = 0;   // padding included
  std::uint64_t valid = 0;  // rows that are observations: the first ones
  bool ragged = false;
  std::uint64_t row_records = 0;          // of a fixed row
  std::uint64_t records = 0;              // of all rows
  std::span<const std::uint64_t> starts;  // ragged: row i is records [starts[i], starts[i + 1]); else empty …
  std::uint64_t longest = 0;              // … and records of the longest row

  /// Records of all rows where each gives `shorten` records less than it has (0 if ragged).
  [[nodiscard]] std::uint64_t records_but(std::uint64_t shorten) const noexcept {
    return ragged ? records : rows * (row_records - shorten);
  }
};

using Dims = boost::container::small_vector<std::uint64_t, 4>;

/// An array that a column makes beside its first one.
struct FurtherArray {
  ScalarType type;
  Dims dims = {};
  std::uint64_t at = 0;  // byte from the first array's begin
  bool operator==(const FurtherArray&) const = default;
};

/// The arrays of a column and the memory that they take.
struct ArrayShape {
  ScalarType type;
  Dims dims = {};
  std::uint64_t bytes = 0;  // from the array's begin; may exceed the array: what lies behind it is scratch memory …
  bool in_place = false;    // the records as read are the array: it takes no bytes of its own
  boost::container::small_vector<FurtherArray, 2> further = {};  // … or these
};

/// A batch in which all rows are filled, and the column's array in it.
struct BatchView {
  const BatchShape& shape;
  std::byte* out;
  ArrayShape& array;  // as shape() said; finish() may lower the first one of its dims, and of those of further arrays
};

class Column {
 public:
  virtual ~Column() = default;

  /// The array in a batch of this shape. Throws InvalidArgument if there can be none.
  [[nodiscard]] virtual ArrayShape shape(const BatchShape& batch) const = 0;
  /// Writes what `row`, which has its records and spans, gives to the arrays that begin at `out`. Of the row, `number`
  /// and `begin` say where that goes.
  virtual void fill_row(const Row& row, const BatchShape& batch, std::byte* out) const = 0;
  /// Writes what rows [valid, rows) have.
  virtual void fill_padding(const BatchShape& batch, std::byte* out) const = 0;
  /// Makes the array of what the rows wrote. What it throws is the batch's error.
  virtual void finish(BatchView& /*batch*/) const {}
};

}  // namespace penstock
