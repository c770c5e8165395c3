// opaque_entries: all entries of a dataset of entries without records, for code that wants every one: names of
// features.
//
// Reads chunks of metadata.index and metadata.bin one after the other, compared with their check values. Any thread;
// waits.
#pragma once

#include "core/io/byte_store.h"
#include "layout/dataset.h"

#include <cstdint>
#include <string>
#include <vector>

namespace penstock::layout {

/// Throws Corruption, naming both files, unless bytes [begin, end) of metadata.bin may be entry `number` of the shard.
void check_opaque_entry(const Shard& shard, std::uint64_t number, std::uint64_t begin, std::uint64_t end);

/// Entries of all shards, in order; `through` is the way to read. Throws InvalidArgument (no dataset of entries without
/// records; an entry of more than 64 MiB), NotFound, IoError, Corruption.
std::vector<std::string> read_opaque_entries(const Dataset& dataset, const StoreChoice& through);

}  // namespace penstock::layout
