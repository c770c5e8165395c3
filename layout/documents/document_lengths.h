// document_lengths: how many records documents have, read from what says where they lie, for code that looks at all of
// them: packing, orders by length.
//
// Reads chunks of the index one after the other. Any thread; waits.
#pragma once

#include "core/io/byte_store.h"
#include "layout/dataset.h"

#include <cstdint>
#include <span>

namespace penstock::layout {

/// Throws InvalidArgument, in words that say why, unless the dataset has documents of records.
void check_has_lengths(const Dataset& dataset);

/// out[i] = records of document first + i of the dataset, which check_has_lengths() passed; `through` is the way to
/// read. Throws InvalidArgument (no such documents), NotFound, IoError, Corruption.
void read_document_lengths(const Dataset& dataset, std::uint64_t first, std::span<std::uint64_t> out,
                           const StoreChoice& through);

}  // namespace penstock::layout
