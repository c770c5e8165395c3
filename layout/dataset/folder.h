// Folder: what lies in a dataset's folder: its manifest, finished shards, and what a writer left behind.
//
// Thread rule: free functions; any thread.
#pragma once

#include "core/io/byte_store.h"
#include "layout/dataset/format.h"
#include "layout/dataset/manifest.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::layout {

struct FolderListing {
  bool has_manifest = false;
  std::vector<ShardId> shards;          // finished shards, by generation and number
  std::vector<std::string> leftovers;   // names of .partial-… entries
  std::vector<std::string> others;      // names of all other folders, but for those that begin with a dot
  std::vector<std::uint64_t> features;  // generations of folders of features that hold a dataset
  std::vector<std::string> notes;       // of a run that goes on with finished shards; of what it leaves out
  bool has_run_lock = false;            // a run is at work, or was killed

  /// Numbers of the finished shards of one generation, ascending.
  [[nodiscard]] std::vector<std::uint64_t> numbers(std::uint64_t generation) const;
};

/// What lies in a folder, whose path may end with a slash.
std::string path_in(const std::string& folder, std::string_view name);

/// Whether a published dataset is in a folder, or what seems one. Throws IoError.
bool has_manifest(ByteStore& store, const std::string& folder);

/// Throws NotFound if there is no such folder, IoError if it cannot be read.
FolderListing list_folder(ByteStore& store, const std::string& path);

/// The generation of shards that are not published: the one after those that dataset.json names (where it cannot be
/// read, after those that are there); without dataset.json the latest that is there, else 0. So what a replaced dataset
/// left is never taken for shards of the next one.
std::uint64_t unpublished_generation(ByteStore& store, const std::string& path, const FolderListing& listing);

/// "3 finished shards, 1 unfinished, the folder features; go on with …", or which folders in it are datasets: what a
/// folder without a manifest holds.
std::string describe_unfinished(ByteStore& store, const std::string& path, const FolderListing& listing);

/// The text of a manifest, a regular file that no link brings out of its dataset: dataset.json by Links::BelowFolder,
/// shard.json by BelowParent. Throws NotFound, IoError, Corruption.
std::string read_manifest_text(ByteStore& store, const std::string& path, Links links);

/// dataset.json of `path`. Throws NotFound (no folder; no manifest, saying what the folder holds), Corruption.
Manifest read_manifest(ByteStore& store, const std::string& path);

/// shard.json of the shard folder `name`.
std::pair<Format, ShardInfo> read_shard_manifest(ByteStore& store, const std::string& path, const std::string& name);

}  // namespace penstock::layout
