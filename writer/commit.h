// What is done with finished shards that several writers made: listing, committing, removing them; combining datasets.
//
// Thread rule: free functions; any thread. Each takes the folder's lock for itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace penstock::writer {

struct FinishedShard {
  std::uint64_t number = 0;
  std::uint64_t records = 0;
  std::uint64_t spans = 0;
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;  // of its files, without side files
  std::string task_json;    // what its writer said that it was made from
};

/// The finished shards of the folder, published or not, by number. Throws NotFound (no folder), Corruption
/// (shard.json).
std::vector<FinishedShard> finished_shards(const std::string& path);

/// Gathers the finished shards 00000, 00001, … under one dataset.json and returns the fingerprint. Throws
/// InvalidArgument: a number is missing, there are not `expected` of them, formats differ, a dataset is published
/// already, a writer is at work; NotFound: no shard; Corruption: a file's size is not what shard.json says; IoError.
std::string commit(const std::string& path, const std::string& tokenizer_json, std::optional<std::uint64_t> expected);

/// Removes finished shards of an unpublished dataset. Throws InvalidArgument, NotFound, IoError.
void remove_shards(const std::string& path, const std::vector<std::uint64_t>& numbers);

/// One dataset at `out` of the shards of `inputs`, in order, without re-encoding: files are hard-linked, else
/// reflinked, else copied. Returns the fingerprint, which is that of opening the inputs as one. Throws InvalidArgument
/// where mode, layout, fields, codec or tokenizer differ, Corruption, NotFound, IoError.
std::string combine(const std::vector<std::string>& inputs, const std::string& out);

}  // namespace penstock::writer
