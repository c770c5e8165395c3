// KeptColumns: what a view keeps of its shards' columns.bin: blocks that were read, of narrow columns before wide ones.
//
// A value of a cell's column is a few bytes, and a read of them costs as much as one of the cell. What is kept grows
// while rows are read, on any thread.
#pragma once

#include "core/rows/allowance.h"
#include "layout/dataset.h"
#include "layout/reading/kept_blocks.h"
#include "layout/values/dataset_columns.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace penstock::layout {

class KeptColumns {
 public:
  /// Of the columns with these numbers. `dataset` outlives it.
  KeptColumns(const Dataset& dataset, const std::vector<std::size_t>& columns);
  ~KeptColumns();
  KeptColumns(const KeptColumns&) = delete;
  KeptColumns& operator=(const KeptColumns&) = delete;

  /// Its steps: the narrowest column, the next one as well, …. It keeps nothing before the grant.
  [[nodiscard]] const std::shared_ptr<Allowance>& allowance() const noexcept { return allowance_; }

  /// Where values of the i-th of the columns are kept; null: they are read each time.
  [[nodiscard]] KeptBlocks* of(std::uint64_t shard, std::size_t i) const {
    if (allowance_->granted() < needs_[i]) return nullptr;
    const std::size_t at = shared_ ? shard : shard * columns_.size() + i;
    KeptBlocks* const made = made_[at].load(std::memory_order_acquire);
    return made != nullptr ? made : make(at, shard, i);
  }

 private:
  [[nodiscard]] std::size_t count() const noexcept { return dataset_.shards.size() * (shared_ ? 1 : columns_.size()); }
  KeptBlocks* make(std::size_t at, std::uint64_t shard, std::size_t i) const;

  const Dataset& dataset_;
  const std::vector<std::size_t> columns_;
  const bool shared_;                 // columns lie beside each other, so that one block has values of several
  std::vector<std::uint64_t> needs_;  // what must be granted for each of the columns
  std::shared_ptr<Allowance> allowance_;
  const std::unique_ptr<std::atomic<KeptBlocks*>[]> made_;  // each is set once, by its first row
};

}  // namespace penstock::layout
