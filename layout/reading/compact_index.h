// The compact layout's index as its readers see it: where each span begins, in records and in entry bytes.
//
// Pure functions; any thread. All values come from disk: nothing is used before check_span_starts() passed it.
#pragma once

#include "layout/dataset.h"
#include "layout/dataset/format.h"
#include "layout/reading/reads.h"

#include <cstddef>
#include <cstdint>

namespace penstock::layout {

/// Element `number` of the entries at `index` (any alignment).
inline CompactIndexEntry load_span_start(const std::byte* index, std::uint64_t number) noexcept {
  return load_at<CompactIndexEntry>(index, number);
}

/// Throws Corruption unless entries [low, high], which lie at `index`, rise, stay inside the shard, and begin at (0, 0)
/// and end at (records, bytes) where they are its first and last.
void check_span_starts(const Shard& shard, const std::byte* index, std::uint64_t low, std::uint64_t high);

/// Throws Corruption unless the sizes of index and directory are what the shard's counts want.
void check_compact(const Shard& shard);

}  // namespace penstock::layout
