// What is done with finished shards that several writers made: listing, committing, removing them.
//
// Thread rule: free functions; any thread. Each takes the folder's lock for itself.
#pragma once

#include "layout/dataset/manifest.h"
#include "writer/shards/features.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace penstock::writer {

struct FinishedShard {
  std::uint64_t number = 0;
  std::uint64_t records = 0;
  std::uint64_t spans = 0;
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;                                     // of its files, without side files
  std::string task_json;                                       // what its writer said that it was made from
  std::vector<std::pair<std::string, std::uint64_t>> files{};  // name and size of each, side files with them
};

// `overwrite` everywhere: the shards meant are those that are to replace the published dataset, if there is one.

/// The finished shards of the folder, by number: those of the published dataset, or those that are not published yet.
/// Throws NotFound (no folder), Corruption (shard.json, dataset.json).
std::vector<FinishedShard> finished_shards(const std::string& path, bool overwrite);

/// Throws Corruption where a file of a finished shard is not of the size that its shard.json says: a shard is whole
/// when it has its name, and this finds what was done to it since, at the price of a stat a file. NotFound, IoError.
void check_sizes(const std::string& path, const layout::Format& format, const layout::ShardInfo& shard);

/// Gathers the finished shards 0, 1, … under one dataset.json and returns the fingerprint. `features` go with it. With
/// `numbers`, ascending, exactly these shards in the place of 0, 1, …. Throws InvalidArgument: a number is missing,
/// there are not `expected` of them, formats differ, a task is not that of `tasks` (JSON of each shard, if given), a
/// dataset is published already, a writer is at work or another run than `run`; NotFound: no shard; Corruption: a
/// file's size is not what shard.json says; IoError.
std::string commit(const std::string& path, const std::string& tokenizer_json, std::optional<std::uint64_t> expected,
                   bool overwrite, const std::optional<std::vector<std::string>>& tasks = std::nullopt,
                   const std::optional<std::string>& run = std::nullopt,
                   const std::optional<FeatureTable>& features = std::nullopt,
                   const std::optional<std::vector<std::uint64_t>>& numbers = std::nullopt);

/// What the text of a shard.json says; `path` names it. Throws Corruption.
FinishedShard describe_shard(std::string shard_json, const std::string& path, std::uint64_t number);

/// A shard folder of an object store, with the text of its shard.json.
struct StoredShard {
  std::string name;
  std::string shard_json;
};

/// The dataset.json of these shards, in the order of their numbers, at the address `path`. Throws as commit() does, but
/// for the files: the caller that lists them compares their sizes.
std::string stored_manifest(const std::string& path, const std::vector<StoredShard>& shards,
                            const std::string& tokenizer_json, const std::optional<std::vector<std::string>>& tasks,
                            const std::optional<layout::FeaturesInfo>& features);

/// Removes finished shards that are not published. Throws InvalidArgument, NotFound, IoError.
void remove_shards(const std::string& path, const std::vector<std::uint64_t>& numbers, bool overwrite,
                   const std::optional<std::string>& run = std::nullopt);

/// Removes what writers left unfinished, also those of other nodes, who are known to be dead. Throws as
/// remove_shards().
void clean(const std::string& path, bool overwrite, const std::optional<std::string>& run = std::nullopt);

}  // namespace penstock::writer
