// RowGroup: rows of one source that are read together, those of a fetch for example.
//
// They go through their rounds in step. The reads of a round are sorted by place and merged (core/io/extents.h), so
// that neighbours cost one request and what several rows need is read once. One thread at a time.
#pragma once

#include "core/base/retry_budget.h"
#include "core/batch/batch.h"
#include "core/io/byte_store.h"
#include "core/io/extents.h"

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace penstock {

struct RowGroup {
  std::shared_ptr<void> owner;  // keeps the rows alive until they are done
  const BatchFormat* format = nullptr;
  std::span<Row> rows;  // fixed rows have their place
  const std::atomic<bool>* cancelled = nullptr;
  RetryBudget* budget = nullptr;  // lives as long as `owner`
  std::function<void()> place;    // ragged rows: all lengths are known; gives each row its place, or throws
  std::function<void()> done;     // all rows have ended, with or without Row::error; must not throw
};

/// The rounds of one group.
class GroupRounds {
 public:
  explicit GroupRounds(RowGroup group);

  /// Plans the next round and gives what is to be read, in order; empty if all rows have ended. Throws std::bad_alloc.
  std::span<Read> next(const StoreChoice& choice);
  /// After all reads of a round have ended.
  void end_round();

  /// Requests of the present round.
  [[nodiscard]] std::size_t requests() const noexcept { return extents_.requests(); }
  [[nodiscard]] const RowGroup& group() const noexcept { return group_; }
  /// All rows that have not ended, or whose reads have not, fail with this error.
  void fail(const std::exception_ptr& error) noexcept;

 private:
  struct Progress {
    bool more = true;
  };

  bool plan_rows();
  void place();
  [[nodiscard]] bool is_open(std::size_t row) const { return progress_[row].more && !group_.rows[row].error; }

  RowGroup group_;
  bool placed_;
  std::vector<Progress> progress_;
  std::vector<Read> reads_;  // of the present round; their owner is the row
  std::vector<Read*> sorted_;
  Extents extents_;
};

}  // namespace penstock
