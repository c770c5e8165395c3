// Folder: what lies in a dataset's folder: its manifest, finished shards, and what a writer left behind.
//
// Thread rule: free functions; any thread.
#pragma once

#include "layout/manifest.h"

#include <cstdint>
#include <string>
#include <vector>

namespace penstock::layout {

struct FolderListing {
  bool has_manifest = false;
  std::vector<std::uint64_t> shards;   // numbers of finished shards, ascending
  std::vector<std::string> leftovers;  // names of .partial-… entries
};

/// Throws NotFound if there is no such folder, IoError if it cannot be read.
FolderListing list_folder(const std::string& path);

/// "3 finished shards and 1 unfinished one; go on with …": what a folder without a manifest holds.
std::string describe_unfinished(const std::string& path, const FolderListing& listing);

/// The whole of a regular file of at most `max_bytes`, never through a symbolic link at its last component. Throws
/// NotFound, IoError, Corruption (not a regular file, too large, changing size).
std::string read_small_file(const std::string& path, std::uint64_t max_bytes);

/// dataset.json of `path`. Throws NotFound (no folder; no manifest, saying what the folder holds), Corruption.
Manifest read_manifest(const std::string& path);

/// shard.json of shard `number`.
std::pair<Format, ShardInfo> read_shard_manifest(const std::string& path, std::uint64_t number);

}  // namespace penstock::layout
