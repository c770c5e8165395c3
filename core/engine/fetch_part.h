// FetchPart: rows of one fetch that are read at once, by place, and their memory; SpareParts recycles them.
#pragma once

#include "core/base/sync.h"
#include "core/batch/batch.h"
#include "core/batch/slab.h"
#include "core/engine/memory_bound.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace penstock {

/// One thread at a time.
struct FetchPart {
  const BatchFormat* format = nullptr;
  std::vector<Row> rows;
  std::uint64_t most_bytes = UINT64_MAX;  // that records of ragged rows may take, and as much their arenas
  ArenaBound bound;                       // of those
  Slab slab;
  std::uint64_t counted_bytes = 0;  // what Stretch::bytes() has of it
  std::uint64_t placed_bytes = 0;   // of the slab, that the rows' records take

  /// Memory for the rows' records, whose lengths are known. Throws std::bad_alloc; InvalidArgument if they are ragged
  /// and need more than `most_bytes`.
  void place();
  /// Slab and arenas, which may be larger than these rows need: parts are recycled.
  [[nodiscard]] std::uint64_t held_bytes() const noexcept;
  /// What these rows need of them.
  [[nodiscard]] std::uint64_t used_bytes() const noexcept;
};

/// Parts that no fetch uses now. To fill their pages anew would cost more than to read them from the page cache: 16
/// instead of 4 µs for a window of 16 KiB. There are never more than fetches have used at once. Any thread.
class SpareParts {
 public:
  explicit SpareParts(std::shared_ptr<MemoryBound> bound) : bound_(std::move(bound)) {}
  ~SpareParts() { clear(); }
  SpareParts(const SpareParts&) = delete;
  SpareParts& operator=(const SpareParts&) = delete;

  /// With `rows` rows that the caller restarts.
  std::unique_ptr<FetchPart> take(std::size_t rows);
  void give(std::unique_ptr<FetchPart> part) noexcept;
  void clear() noexcept;

 private:
  struct Spare {
    std::unique_ptr<FetchPart> part;
    std::uint64_t bytes = 0;  // counted in bound_
  };

  const std::shared_ptr<MemoryBound> bound_;
  sync::Mutex mutex_;
  std::vector<Spare> spares_;
};

}  // namespace penstock
