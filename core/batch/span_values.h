// Span values: what a caller computes from the metadata of a ready batch, spread over the arrays that wait for it.
//
// Entries of the batch are numbered: one that several spans have is one entry. One thread at a time, before any other
// has the batch.
#pragma once

#include "core/batch/batch.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace penstock {

/// Which entry each span of a batch has, by row and start; and of each entry the first span that has it.
struct EntryNumbers {
  std::vector<std::uint32_t> of_span;
  std::vector<std::uint64_t> first_span;
};
EntryNumbers number_entries(const Batch& batch);

/// Records [begin, end) of a document.
struct DocumentRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// Fills column `number`, a PerSpanSpec's: `values` has one for each entry. Throws InvalidArgument where they are too
/// few, or the column is none.
void spread_values(Batch& batch, std::size_t number, const EntryNumbers& entries, std::span<const std::byte> values);

/// Of column `number`, a TargetSpec's: targets beyond the ranges of their document do not count. Entry e has ranges
/// [firsts[e], firsts[e + 1]), in any order. Throws InvalidArgument where spans do not know their offset, as above.
void keep_targets(Batch& batch, std::size_t number, const EntryNumbers& entries, std::span<const std::uint64_t> firsts,
                  std::span<const DocumentRange> ranges);

}  // namespace penstock
