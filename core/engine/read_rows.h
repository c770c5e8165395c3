// read_rows: observations by their index, at once, on the calling thread: what a view's [i] and read(indices) do.
// locate_rows: where they lie, without their records.
#pragma once

#include "core/batch/batch.h"
#include "core/io/byte_store.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace penstock {

/// How observations are read at once.
struct ReadOptions {
  StoreChoice through = {};
  std::uint64_t most_bytes = UINT64_MAX;     // of records, or of what is read beside them
  std::function<void()> while_waiting = {};  // called several times a second while a read takes long; may throw
};

/// A ready batch whose row i is observation indices[i] of the first format's source, in epoch 0. Throws InvalidArgument
/// for an index that is not below the source's size (before anything is read) and where more than most_bytes are
/// needed; and what reading and while_waiting throw. Any thread.
std::shared_ptr<Batch> read_rows(std::shared_ptr<const BatchFormats> formats, std::span<const std::uint64_t> indices,
                                 const ReadOptions& options = {});

/// A ready batch of what stands at `picks`, of which `wanted` is read and kept, records never: row i has its length,
/// first record and, if they are wanted, spans. Rows must be of one shape. Throws as read_rows does. Any thread.
std::shared_ptr<Batch> locate_rows(std::span<const std::shared_ptr<const Source>> sources, std::vector<Pick> picks,
                                   Parts wanted, const ReadOptions& options = {});

}  // namespace penstock
