// Batch: one rank's part of one global batch: its rows, the memory they are read into, and what became of them.
//
// The engine's threads fill it; when it is ready nothing changes any more and any thread may look. It keeps its sources
// alive, so what points into them (schemas, files) stays valid as long as the batch. Batches are recycled by their pool
// with their memory and their rows' arenas.
#pragma once

#include "core/batch/column.h"
#include "core/batch/column_spec.h"
#include "core/batch/row_slice.h"
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

class Stretch;  // core/engine/fetch.h; here it is only kept alive

/// How rows of one source become arrays: the records as read, then the columns that were asked for.
struct BatchFormat {
  std::shared_ptr<const Source> source;
  RowShape shape;
  std::uint64_t stored_record_bytes = 0;
  std::vector<ColumnSpec> specs;
  std::vector<std::shared_ptr<const Column>> columns;  // of the specs, in their order
  Parts wanted = Parts::All;                           // what is read of each row
  std::shared_ptr<const RowSlice> slice;               // the part of each row that columns have; null: all of it
  // Bytes in memory: what lies before record 0 of the first fixed row, and from one fixed row to the next.
  std::uint64_t lead_bytes = 0;
  std::uint64_t row_bytes = 0;

  /// Resolves `specs` for the source; what they need is wanted besides `wanted` and after the chunks of `slice`.
  /// Throws InvalidArgument for rows that no memory holds, and as make_column does.
  BatchFormat(std::shared_ptr<const Source> source, std::vector<ColumnSpec> specs, Parts wanted = Parts::All,
              const std::shared_ptr<const RowSlice>& slice = nullptr);

  /// Whether rows of `other` fit into a batch of this format.
  [[nodiscard]] bool holds(const BatchFormat& other) const;
  /// Whether its rows are arrays of the same records: `records` shows both.
  [[nodiscard]] bool has_records_of(const BatchFormat& other) const noexcept;
};

using BatchFormats = std::vector<BatchFormat>;  // by source number

/// Formats of sources whose rows may meet in one batch: where rows have one length and columns of one shape, all get
/// room for the largest, whatever else is in their records. Throws InvalidArgument where a column is of one field, but
/// that is of another kind or has other axes in the second source.
BatchFormats join(BatchFormats formats);

/// Lets the arenas of `rows`, which are about to be restarted, take `most_bytes` together. What they kept is let go if
/// it is so much that little could be added.
void bind_arenas(std::span<Row> rows, std::uint64_t most_bytes, ArenaBound& bound) noexcept;

/// Throws InvalidArgument: `rows`, which are ragged and of one source, need `bytes` together, and `most_bytes` are
/// allowed.
[[noreturn]] void raise_too_long(const SourceInfo& of, std::span<const Row> rows, std::uint64_t bytes,
                                 std::uint64_t most_bytes);

/// An array of a batch: where it begins in the slab, and its shape.
struct PlacedArray {
  std::uint64_t at = 0;
  ArrayShape shape;
};

struct Batch {
  /// What engine threads may do with it. Changed under the engine's mutex; who sees Ready, Failed or NeedsMemory
  /// without it also sees all that was written before.
  enum class Phase { Planned, Picking, Fetching, Measuring, NeedsMemory, Reading, Ready, Failed };

  BatchPlan plan;
  std::shared_ptr<const BatchFormats> formats;
  const BatchFormat* format = nullptr;  // of all rows

  std::vector<Pick> picks;                // of the plan.valid first rows; the others are padding
  std::vector<std::uint64_t> positions;   // at which they stand; empty: they were read from a view
  std::vector<Row> rows;                  // plan.rows of them are in use
  std::uint64_t most_bytes = UINT64_MAX;  // that records of ragged rows may take, and as much their arenas
  ArenaBound bound;                       // of those
  // Rows that share fetches (core/engine/fetch.h) are read elsewhere and taken by adopt_row(); `fetches` keeps them.
  bool shares_fetches = false;
  bool picks_may_wait = false;  // which rows it has is known only after reads (core/engine/row_choice.h)
  std::vector<Row*> fetched;
  std::vector<std::shared_ptr<Stretch>> fetches;
  std::vector<std::uint64_t> starts;       // ragged: row i is records [starts[i], starts[i + 1]); else empty
  std::vector<std::uint64_t> byte_starts;  // … and these bytes of the slab, from records_at on …
  std::uint64_t longest = 0;               // … and records of the longest row

  Slab slab;
  std::uint64_t records_at = 0;     // byte in the slab where record 0 of the first row lies
  std::vector<PlacedArray> arrays;  // of the columns

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
  /// The place of row i's record 0, once place() was called.
  [[nodiscard]] std::byte* row_records(std::uint64_t i) noexcept;
  /// What columns may know of it.
  [[nodiscard]] BatchShape shape() const noexcept;
  /// Of row i.
  [[nodiscard]] const BatchFormat& row_format(std::uint64_t i) const { return (*formats)[picks[i].source]; }
  /// Whether `records` can show all rows: not where fields lie apart, nor where sources meet whose records differ.
  [[nodiscard]] bool has_records() const;
  /// Bytes that records and columns need, once the rows' lengths are known. Throws InvalidArgument for more than any
  /// memory holds, and as Column::shape does.
  [[nodiscard]] std::uint64_t needed_bytes() const;
  /// Throws InvalidArgument for a plan with more rows than any memory holds.
  void check_rows() const;
  /// Own memory of at least `bytes`. Throws InvalidArgument where the system has none.
  void ensure_slab(std::uint64_t bytes);
  /// The same of ragged rows, whose lengths are what a file says. Throws InvalidArgument if it is above `most_bytes`.
  [[nodiscard]] std::uint64_t bounded_bytes() const;
  /// Slab and arenas.
  [[nodiscard]] std::uint64_t held_bytes() const noexcept;

  /// Makes row i of picks[i] for all valid rows, arenas empty. Throws InvalidArgument if sources of different shape
  /// meet.
  void prepare_rows();
  /// Row i as it was before its first stage, but for its place in memory.
  void prepare_row(std::uint64_t i);
  /// ragged: starts and byte_starts from the rows' lengths. Throws InvalidArgument where 64 bits do not count them.
  void measure();
  /// Gives every row and column its place in the slab and writes the padding.
  void place();
  /// Takes the row that was read elsewhere, and copies its records to their place. Then finish_row().
  void adopt_row(std::uint64_t i);
  /// Spans and columns of row i, after its last read: its records are at rows[i].records.
  void finish_row(std::uint64_t i);
  /// After the last row, if no row failed: what columns make of all rows. Throws as Column::finish does.
  void finish();

 private:
  [[nodiscard]] std::uint64_t columns_at() const;
  [[noreturn]] void raise_too_large() const;
  void fill_columns(const BatchFormat& own, Row& row, std::uint64_t i);
  void clear_padding();
};

/// InvalidArgument: the system has no memory for the batch.
[[noreturn]] void raise_no_memory(const Batch& batch);

/// A field's array of a ready batch, for what is asked for after the fact.
class LateArray {
 public:
  /// Throws as make_column and Column::shape do.
  LateArray(const Batch& batch, const FieldSpec& spec);

  [[nodiscard]] const ArrayShape& shape() const noexcept { return shape_; }
  /// Writes shape().bytes. Throws as Column::fill_row does.
  void write(std::byte* out) const;

 private:
  const Batch& batch_;
  std::vector<std::shared_ptr<const Column>> columns_;  // by source number; null where no row is of it
  ArrayShape shape_;
};

}  // namespace penstock
