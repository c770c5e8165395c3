// Folder: what lies in a dataset's folder: its manifest, finished shards, and what a writer left behind.
//
// Thread rule: free functions; any thread.
#pragma once

#include "layout/format.h"
#include "layout/manifest.h"

#include <cstdint>
#include <string>
#include <vector>

namespace penstock::layout {

struct FolderListing {
  bool has_manifest = false;
  std::vector<ShardId> shards;         // finished shards, by generation and number
  std::vector<std::string> leftovers;  // names of .partial-… entries

  /// Numbers of the finished shards of one generation, ascending.
  [[nodiscard]] std::vector<std::uint64_t> numbers(std::uint64_t generation) const;
};

/// Throws NotFound if there is no such folder, IoError if it cannot be read.
FolderListing list_folder(const std::string& path);

/// The generation of shards that are not published: the one after those that dataset.json names (where it cannot be
/// read, after those that are there); without dataset.json the latest that is there, else 0. So what a replaced dataset
/// left is never taken for shards of the next one.
std::uint64_t unpublished_generation(const std::string& path, const FolderListing& listing);

/// "3 finished shards, 1 unfinished; go on with …", or which folders in it are datasets: what a folder without a
/// manifest holds.
std::string describe_unfinished(const std::string& path, const FolderListing& listing);

/// The whole of a regular file of at most `max_bytes`, never through a symbolic link at its last component. Throws
/// NotFound, IoError, Corruption (not a regular file, too large, changing size).
std::string read_small_file(const std::string& path, std::uint64_t max_bytes);

/// dataset.json of `path`. Throws NotFound (no folder; no manifest, saying what the folder holds), Corruption.
Manifest read_manifest(const std::string& path);

/// shard.json of the shard folder `name`.
std::pair<Format, ShardInfo> read_shard_manifest(const std::string& path, const std::string& name);

}  // namespace penstock::layout
