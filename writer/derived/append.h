// append: adds the shards of other datasets at the end of a published one; those that are there stay as they are.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace penstock::writer {

/// Publishes the dataset at `path` with the shards of the datasets `more` behind its own, in order: files are
/// hard-linked, else reflinked, else copied, into shards of the next generation, and one rename publishes a manifest
/// that names these as well. So whoever has the dataset open reads on. With `resume`, nothing is done where the dataset
/// ends with these shards already. `progress(done, shards)` is called after each shard and may throw to stop. Returns
/// the fingerprint. Throws InvalidArgument where what combine() compares differs, where the dataset says its tokenizer
/// and one of `more` does not, or a writer is at work; Corruption, NotFound, IoError.
std::string append(const std::string& path, const std::vector<std::string>& more, bool resume,
                   const std::function<void(std::uint64_t, std::uint64_t)>& progress);

}  // namespace penstock::writer
