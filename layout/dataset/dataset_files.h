// The files of a dataset that readers may read, wherever they lie.
#pragma once

#include "layout/dataset.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace penstock::layout {

/// (path, bytes) of each file of `dataset` in `store`, with the files of check values where it has them. Any thread.
std::vector<std::pair<std::string, std::uint64_t>> files_in(const Dataset& dataset, const ByteStore& store);

/// The `task` of a shard's shard.json, as JSON; "null" where there is no such file. Throws IoError, Corruption. Any
/// thread.
std::string task_of(const Dataset& dataset, std::size_t shard);

}  // namespace penstock::layout
