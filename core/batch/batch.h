// Batch: one rank's part of one global batch: its rows, the memory they are read into, and what became of them.
//
// The engine's threads fill it; when it is ready nothing changes any more and any thread may look. It keeps its sources
// alive, so what points into them (schemas, files) stays valid as long as the batch. Batches are recycled by their pool
// with their memory and their rows' arenas.
#pragma once

#include "core/base/retry_budget.h"
#include "core/base/sync.h"
#include "core/batch/batch_format.h"
#include "core/batch/slab.h"
#include "core/columns/column.h"
#include "core/job/job.h"
#include "core/job/order.h"
#include "core/rows/source.h"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

namespace penstock {

class Stretch;  // core/engine/fetch.h; here it is only kept alive

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
  std::shared_ptr<const Job> job;  // whose positions the plan's are; null: it was read from a view
  std::shared_ptr<const BatchFormats> formats;
  const BatchFormat* format = nullptr;  // of all rows

  std::vector<Pick> picks;                // of the plan.valid first rows; the others are padding
  std::vector<std::uint64_t> positions;   // at which they stand; empty: they were read from a view
  std::vector<Row> rows;                  // plan.rows of them are in use
  std::uint64_t most_bytes = UINT64_MAX;  // that records of ragged rows may take, and as much their arenas
  ArenaBound bound;                       // of those
  // Rows that share fetches (core/engine/fetch.h) are read elsewhere and taken over once they are; `fetches` keeps
  // them.
  bool shares_fetches = false;
  bool picks_may_wait = false;  // which rows it has is known after reads, or by an answer (Order::may_wait)
  std::vector<Row*> fetched;
  std::vector<std::shared_ptr<Stretch>> fetches;
  std::vector<std::uint64_t> starts;       // ragged: row i is records [starts[i], starts[i + 1]); else empty
  std::vector<std::uint64_t> byte_starts;  // … and these bytes of the slab, from records_at on …
  std::uint64_t longest = 0;               // … and records of the longest row

  Slab slab;
  std::uint64_t records_at = 0;     // byte in the slab where record 0 of the first row lies
  std::vector<PlacedArray> arrays;  // of the columns

  sync::Atomic<Phase> phase{Phase::Planned};
  std::uint64_t claimed = 0;            // rows handed to threads in this phase
  sync::Atomic<std::uint64_t> left{0};  // rows that have not ended in this phase
  sync::Atomic<bool> cancelled{false};
  RetryBudget budget;
  std::exception_ptr error;  // of the lowest row that failed
  std::uint64_t error_row = UINT64_MAX;
  std::uint64_t accounted_bytes = 0;  // what the pool counts for it

  /// Records of all rows without lead and tail: plan.rows * length, or starts.back().
  [[nodiscard]] std::uint64_t record_count() const noexcept;
  /// Records of row i.
  [[nodiscard]] std::uint64_t row_length(std::uint64_t i) const noexcept;
  /// The place of row i's record 0, once it has one.
  [[nodiscard]] std::byte* row_records(std::uint64_t i) noexcept;
  /// What columns may know of it.
  [[nodiscard]] BatchShape shape() const noexcept;
  /// Of row i.
  [[nodiscard]] const BatchFormat& row_format(std::uint64_t i) const { return (*formats)[picks[i].source]; }
  /// Whether `records` can show all rows: not where fields lie apart, nor where sources meet whose records differ.
  [[nodiscard]] bool has_records() const;
  /// Slab and arenas.
  [[nodiscard]] std::uint64_t held_bytes() const noexcept;
};

}  // namespace penstock
