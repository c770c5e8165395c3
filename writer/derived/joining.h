// What combine() and append() share: which datasets go together, and shards that are taken over as they are.
//
// Thread rule: free functions; any thread.
#pragma once

#include "layout/dataset/manifest.h"
#include "writer/folder/dataset_folder.h"

#include <cstdint>
#include <string>
#include <vector>

namespace penstock::writer {

/// Throws InvalidArgument unless shards of all the datasets, whose paths `inputs` are, may be one dataset's: mode,
/// layout, fields, codec, columns and features are the first one's. `task` is "combine" or "append".
void check_together(const char* task, const std::vector<std::string>& inputs,
                    const std::vector<layout::Manifest>& manifests);

/// The tokenizer of all of them, JSON; "null" where one does not say. Throws InvalidArgument where they differ.
std::string common_tokenizer(const char* task, const std::vector<std::string>& inputs,
                             const std::vector<layout::Manifest>& manifests);

/// Whether shard `number` of `out`, which an earlier run finished, is the one in folder `from`: shard.json is the same
/// and the files are as long as it says. Throws NotFound, IoError.
bool has_shard(const DatasetFolder& out, std::uint64_t number, const std::string& from, const layout::Format& format,
               const layout::ShardInfo& shard);

/// Publishes the shard in folder `from` as shard `number` of `out`: hard-linked, else reflinked, else copied.
void copy_shard(const std::string& from, const layout::Format& format, const layout::ShardInfo& shard,
                DatasetFolder& out, std::uint64_t number);

}  // namespace penstock::writer
