// read_rows: observations by their index, at once, on the calling thread: what a view's [i] and read(indices) do.
// locate_rows: where they lie, without their records.
#pragma once

#include "core/batch/batch.h"
#include "core/io/byte_store.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace penstock {

/// A ready batch whose row i is observation indices[i] of the first format's source, in epoch 0. Throws InvalidArgument
/// for an index that is not below the source's size (before anything is read) and where records, or what is read beside
/// them, need more than `most_bytes`; and what reading throws. Any thread.
std::shared_ptr<Batch> read_rows(std::shared_ptr<const BatchFormats> formats, std::span<const std::uint64_t> indices,
                                 const StoreChoice& through = {}, std::uint64_t most_bytes = UINT64_MAX);

/// A ready batch of what stands at `picks`, of which `wanted` is read and kept, records never: row i has its length,
/// first record and, if they are wanted, spans. Rows must be of one shape. Throws as read_rows does. Any thread.
std::shared_ptr<Batch> locate_rows(std::span<const std::shared_ptr<const Source>> sources, std::vector<Pick> picks,
                                   Parts wanted, const StoreChoice& through = {},
                                   std::uint64_t most_bytes = UINT64_MAX);

}  // namespace penstock
