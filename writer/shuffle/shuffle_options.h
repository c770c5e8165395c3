// What a shuffle is asked for. Values; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace penstock::writer {

/// Finished shards that do not stay in `out`, a scratch folder: each is moved on, to a bucket.
struct ShardsElsewhere {
  std::string path;                                  // where they go, for messages
  std::vector<std::string> finished;                 // shard.json of those of an earlier run, from 0 on; they are kept
  bool is_published = false;                         // those are of a published dataset, which stays as it is
  std::function<void(std::uint64_t number)> moving;  // called when a shard is whole in `out`; it may take it. May throw
};

struct ShuffleOptions {
  std::optional<std::uint64_t> window;  // observations are windows of this many records; none: documents
  std::string order_json = "null";      // all that decides the permutation; resuming compares it
  std::uint64_t memory_bytes = std::uint64_t{1} << 30;
  std::uint64_t shard_bytes = std::uint64_t{1} << 30;  // a shard ends after the observation that brings it there
  std::string scratch;                                 // folder of the scratch file; "": `out`
  bool resume = false;                                 // keep finished shards of the same task
  bool overwrite = false;                              // replace the dataset that is there, once the new one is whole
  std::optional<ShardsElsewhere> elsewhere;            // then without `resume` and `overwrite`
};

/// Throws InvalidArgument for a shard size of 0.
void check_shard_bytes(const ShuffleOptions& options);

/// out[i] = where observation in[i] of the dataset stands in the result.
using Destinations = std::function<void(std::span<const std::uint64_t> in, std::span<std::uint64_t> out)>;
/// The destinations for a dataset of this many observations, which is not 0.
using MakeDestinations = std::function<Destinations(std::uint64_t size)>;

}  // namespace penstock::writer
