// RecordArray: where the rows of a batch lie in an array that has a value for each record.
//
//   fixed rows   [rows, length - shorten]
//   ragged rows  [records], rows end to end; with Padding [rows, T]: what lies beside a row's records is padding
//
// Values; any thread.
#pragma once

#include "core/columns/column.h"
#include "core/rows/source.h"

#include <cstdint>
#include <optional>

namespace penstock {

/// Makes rectangles of ragged rows.
struct Padding {
  std::uint64_t length = 0;       // T; 0: that of the batch's longest row …
  std::uint64_t multiple_of = 1;  // … rounded up to a multiple of this
  bool left = false;              // it comes before the records

  /// T in this batch. Throws InvalidArgument where 64 bits do not count it.
  [[nodiscard]] std::uint64_t row_length(const BatchShape& batch) const;
};

class RecordArray {
 public:
  /// Of rows of `source` without their `shorten` last records. Throws InvalidArgument: padding of fixed rows, or to a
  /// multiple of 0.
  RecordArray(const SourceInfo& source, std::uint64_t shorten, std::optional<Padding> padding = {});

  [[nodiscard]] Dims dims(const BatchShape& batch) const;
  /// Values of all rows. Throws InvalidArgument where 64 bits do not count them.
  [[nodiscard]] std::uint64_t count(const BatchShape& batch) const;

  /// Values [begin, begin + length) are of the row, those of its records from begin + lead on.
  struct Place {
    std::uint64_t begin = 0;
    std::uint64_t length = 0;
    std::uint64_t lead = 0;
  };
  [[nodiscard]] Place row(const BatchShape& batch, std::uint64_t number) const;
  /// The values of rows [valid, rows).
  [[nodiscard]] Place padding_rows(const BatchShape& batch) const;

 private:
  bool ragged_;
  std::uint64_t shorten_;
  std::optional<Padding> padding_;
};

}  // namespace penstock
