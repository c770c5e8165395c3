// SpanFinder: finds the spans of a row that was cut into pieces, one class for each way in which spans are stored.
//
// How rows are cut is no matter to it, so each cutter goes with each finder. Any thread; what it knows of a row is in
// the row's arena (CutRow::found).
#pragma once

#include "layout/dataset.h"
#include "layout/windows/pieces.h"

#include <memory>

namespace penstock::layout {

class SpanFinder {
 public:
  explicit SpanFinder(DatasetPtr dataset) : dataset_(std::move(dataset)) {}
  virtual ~SpanFinder() = default;
  SpanFinder(const SpanFinder&) = delete;
  SpanFinder& operator=(const SpanFinder&) = delete;

  /// Whether spans are found by the records. The cutter then reads these in round 0, wanted or not, and with them one
  /// more on each side of the row where its shard has one.
  [[nodiscard]] virtual bool looks_at_records() const noexcept { return false; }
  /// What it keeps of the metadata's files, or null.
  [[nodiscard]] virtual std::shared_ptr<Allowance> keeps() const noexcept { return nullptr; }

  /// As Source::plan(). Round 0 is the round in which the records are read; `wanted` has spans or entries.
  virtual bool plan(Row& row, CutRow& cut, unsigned round, Parts wanted, Reads& out) const = 0;
  /// As Source::spans().
  virtual void spans(const CutRow& cut, SpanTable& out) const = 0;

 protected:
  [[nodiscard]] const Shard& shard(const Piece& piece) const { return dataset_->shards[piece.shard]; }
  [[nodiscard]] const Dataset& dataset() const { return *dataset_; }

 private:
  DatasetPtr dataset_;
};

/// The finder of a dataset's spans; null for one that has none. Throws Corruption if the sizes of its metadata's files
/// cannot be.
std::unique_ptr<const SpanFinder> make_span_finder(const DatasetPtr& dataset);

std::unique_ptr<const SpanFinder> make_compact_finder(DatasetPtr dataset);
std::unique_ptr<const SpanFinder> make_ids_finder(DatasetPtr dataset);
std::unique_ptr<const SpanFinder> make_megatron_finder(DatasetPtr dataset);
std::unique_ptr<const SpanFinder> make_bounds_finder(DatasetPtr dataset);

}  // namespace penstock::layout
