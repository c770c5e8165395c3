// Batch: one rank's part of one global batch: its rows, the memory they are read into, and what became of them.
//
// The engine's threads fill it; when it is ready nothing changes any more and any thread may look. It keeps its sources
// alive, so what points into them (schemas, files) stays valid as long as the batch. Batches are recycled by their pool
// with their memory and their rows' arenas.
#pragma once

#include "core/batch/columns.h"
#include "core/batch/slab.h"
#include "core/batch/source.h"
#include "core/job/cursor.h"
#include "core/job/order.h"

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <vector>

namespace penstock {

/// How rows of one source become arrays: the records as read, then the columns that were asked for.
struct BatchFormat {
  std::shared_ptr<const Source> source;
  RowShape shape;
  std::uint64_t stored_record_bytes = 0;
  std::vector<Column> columns;
  int labels = -1;            // the column that padding fills with -100 (what torch's cross_entropy ignores), or -1
  Parts wanted = Parts::All;  // what is read of each row

  /// Reads shape and sizes from the source and checks the columns against its schema.
  BatchFormat(std::shared_ptr<const Source> source, std::vector<Column> columns, int labels);

  /// Whether rows of `other` fit into a batch of this format.
  [[nodiscard]] bool holds(const BatchFormat& other) const noexcept;
  /// Records in memory from one fixed row to the next: lead, row, tail, and what keeps copies fast (see .cpp).
  [[nodiscard]] std::uint64_t row_stride_records() const noexcept { return row_stride_records_; }

 private:
  std::uint64_t row_stride_records_ = 0;
};

using BatchFormats = std::vector<BatchFormat>;  // by source number

struct Batch {
  /// What engine threads may do with it. Changed under the engine's mutex; who sees Ready, Failed or NeedsMemory
  /// without it also sees all that was written before.
  enum class Phase { Planned, Picking, Fetching, Measuring, NeedsMemory, Reading, Ready, Failed };

  BatchPlan plan;
  std::shared_ptr<const BatchFormats> formats;
  const BatchFormat* format = nullptr;  // of all rows

  std::vector<Pick> picks;            // of the plan.valid first rows; the others are padding
  std::vector<Row> rows;              // plan.rows of them are in use
  // Rows that share fetches (core/engine/fetch.h) are read elsewhere and taken by adopt_row(); `fetches` keeps them.
  bool shares_fetches = false;
  std::vector<Row*> fetched;
  std::vector<std::shared_ptr<void>> fetches;
  std::vector<std::uint64_t> starts;  // ragged: row i is records [starts[i], starts[i + 1]); else empty

  Slab slab;
  std::uint64_t records_at = 0;           // byte in the slab where the records begin …
  std::vector<std::uint64_t> columns_at;  // … and each column

  std::atomic<Phase> phase{Phase::Planned};
  std::uint64_t claimed = 0;           // rows handed to threads in this phase
  std::atomic<std::uint64_t> left{0};  // rows that have not ended in this phase
  std::atomic<bool> cancelled{false};
  std::exception_ptr error;  // of the lowest row that failed
  std::uint64_t error_row = UINT64_MAX;
  std::uint64_t accounted_bytes = 0;  // what the pool counts for it

  /// Records of all rows without lead and tail: plan.rows * length, or starts.back().
  [[nodiscard]] std::uint64_t record_count() const noexcept;
  /// Records of row i.
  [[nodiscard]] std::uint64_t row_length(std::uint64_t i) const noexcept;
  /// Where record 0 of row i lies.
  [[nodiscard]] std::byte* row_records(std::uint64_t i) noexcept;
  /// Records that column c has in all rows.
  [[nodiscard]] std::uint64_t column_records(const Column& column) const noexcept;
  /// Bytes that records and columns need, once the rows' lengths are known.
  [[nodiscard]] std::uint64_t needed_bytes() const;
  /// Slab and arenas.
  [[nodiscard]] std::uint64_t held_bytes() const noexcept;

  /// Makes row i of picks[i] for all valid rows, arenas empty. Throws InvalidArgument if sources of different shape
  /// meet.
  void prepare_rows();
  /// Row i as it was before its first stage, but for its place in memory.
  void prepare_row(std::uint64_t i);
  /// ragged: starts from the rows' lengths.
  void measure();
  /// Gives every row and column its place in the slab and clears the padding (zeros; labels -100).
  void place();
  /// Takes the row that was read elsewhere, and copies its records to their place. Then finish_row().
  void adopt_row(std::uint64_t i);
  /// Spans and columns of row i, after its last read.
  void finish_row(std::uint64_t i);

 private:
  void clear_padding();
};

/// Casts `column` of all valid rows of a ready batch densely to `out` ([column_records(column), dims…]); padding as in
/// clear_padding: zeros, or -100 if `labels`. For arrays that are asked for after the fact.
void cast_column(Batch& batch, const Column& column, bool labels, std::byte* out);

}  // namespace penstock
