// A shuffle in tasks, for many processes that share a file system: where its shards end follows from the index, each
// part of the input puts its pieces aside in a file, and each shard is made of all those files.
//
// The shards are those that shuffle() makes, byte for byte. Free functions; any thread.
#pragma once

#include "writer/files/progress.h"
#include "writer/folder/dataset_folder.h"
#include "writer/shuffle/put_aside.h"
#include "writer/shuffle/shuffle_cuts.h"
#include "writer/shuffle/shuffle_options.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace penstock::writer {

struct ShuffleTasks {
  std::string identity;            // JSON: what tells this shuffle from others
  std::vector<std::string> tasks;  // of each shard of the result, as its shard.json has it
  ShuffleCuts cuts;
  std::vector<std::uint64_t> input_bytes;  // of each shard of the input
};

/// Throws as shuffle() and cut_shuffle() do.
ShuffleTasks plan_shuffle_tasks(const std::string& path, const ShuffleOptions& options,
                                const MakeDestinations& destinations, const TellProgress& progress);

/// What all processes of a shuffle know.
struct ShuffleWork {
  std::string path;
  ShuffleOptions options;
  MakeDestinations destinations;
  std::string identity;              // as it was planned
  std::vector<BucketRange> buckets;  // of the shards that are to be made
};

/// Puts pieces of the input's shards [begin, end) aside in a new file. Throws Corruption, also where the input is not
/// the one that was planned for; IoError.
void put_shuffle_aside(const ShuffleWork& work, std::size_t begin, std::size_t end, const std::string& file,
                       bool is_synced, const TellProgress& progress);

/// Shards of the result that are made by one who reads their buckets.
struct ShuffledShardsTask {
  struct Shard {
    std::uint64_t number = 0;
    std::string task_json;
    BucketRange range;
  };
  std::vector<Shard> shards;     // ascending
  std::size_t first_bucket = 0;  // of the work's buckets: those that the shards are made of
  std::size_t end_bucket = 0;
  std::vector<std::string> files;  // in the order of the input
};

/// Makes them in `out`. Throws as ShardWriter and AsideFiles do; Corruption as put_shuffle_aside().
void make_shuffled_shards(const ShuffleWork& work, const ShuffledShardsTask& task, DatasetFolder& out,
                          const TellProgress& progress);

}  // namespace penstock::writer
