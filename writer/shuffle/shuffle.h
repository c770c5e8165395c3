// shuffle: a dataset whose observations stand on the disk in the order of a permutation.
//
// Two passes: the first puts each observation aside with those that go to the same part of the result, the second puts
// each part into memory and in order. Thread rule: free function; any thread.
#pragma once

#include "writer/files/progress.h"
#include "writer/shuffle/shuffle_options.h"

#include <string>

namespace penstock::writer {

/// Writes the compact, token or opaque dataset at `path` to `out`, its observations in their new order: each span of
/// one with its entry, then the records past the last window. The bytes do not depend on the memory. Returns the
/// fingerprint. With `elsewhere` the dataset.json of `out` names shards that may be gone from there. Memory is
/// `memory_bytes` and 8 MiB of files' buffers; the scratch file takes what is shuffled, an observation's entry as often
/// as it is cut by windows. Finished shards stay whatever is thrown. Throws InvalidArgument: the dataset has no such
/// observations, too little memory, something is there; Corruption: a CRC, a digest, an index; NotFound; IoError; what
/// `progress` and `moving` throw.
std::string shuffle(const std::string& path, const std::string& out, const ShuffleOptions& options,
                    const MakeDestinations& destinations, const TellProgress& progress);

}  // namespace penstock::writer
