// ShuffleCuts: where the shards of a shuffle's result end, and into which buckets each is cut, so that a bucket fits
// into memory. Both follow from the input's index.
#pragma once

#include "writer/files/progress.h"
#include "writer/shuffle/put_aside.h"
#include "writer/shuffle/shuffle_input.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace penstock::writer {

struct ShuffleCuts {
  struct Shard {
    BucketRange range;
    std::uint64_t bytes = 0;  // of records, entries and values
  };
  std::vector<Shard> shards;  // at least one
  // Ascending. Each lies in one shard; where the memory has no room for buffers of so many, or is of several whole
  // ones.
  std::vector<BucketRange> buckets;
};

/// The shards are those that shuffle() makes: one ends after the observation that brings it to `shard_bytes`. Reads the
/// index once for each `memory_bytes` / 16 observations, at least 2^18. Throws InvalidArgument where a bucket or the
/// buffers of all do not fit into the memory, with what is needed; Corruption, IoError.
ShuffleCuts cut_shuffle(const ShuffleInput& input, std::uint64_t memory_bytes, std::uint64_t shard_bytes,
                        Progress& progress);

}  // namespace penstock::writer
