// BatchWork: what threads do with a batch: its rows are made, measured, given their places, finished.
//
// It is made for a call and owns nothing. Rows are adopted and finished by several threads at once, each its own; all
// else is one thread's.
#pragma once

#include "core/batch/batch.h"

#include <cstdint>

namespace penstock {

class BatchWork {
 public:
  explicit BatchWork(Batch& batch) noexcept : batch_(batch) {}

  /// Makes row i of picks[i] for all valid rows, arenas empty. Throws InvalidArgument if sources of different shape
  /// meet.
  void prepare_rows() const;
  /// Row i as it was before its first stage, but for its place in memory.
  void prepare_row(std::uint64_t i) const;
  /// ragged: starts and byte_starts from the rows' lengths. Throws InvalidArgument where 64 bits do not count them.
  void measure() const;
  /// Gives every row and column its place in the slab and writes the padding.
  void place() const;
  /// Takes the row that was read elsewhere, and copies its records to their place. Then finish_row().
  void adopt_row(std::uint64_t i) const;
  /// Spans and columns of row i, after its last read: its records are at rows[i].records.
  void finish_row(std::uint64_t i) const;
  /// After the last row, if no row failed: what columns make of all rows. Throws as Column::finish does.
  void finish() const;

 private:
  void fill_columns(const BatchFormat& own, Row& row, std::uint64_t i) const;
  void clear_padding() const;

  Batch& batch_;
};

}  // namespace penstock
