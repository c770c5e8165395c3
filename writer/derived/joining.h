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

enum class Joining { Combine, Append };

/// The tokenizer of datasets whose shards become one dataset's, JSON; "null" where one does not say. `inputs` are their
/// paths. Throws InvalidArgument unless mode, layout, fields, codec, columns and features are the first one's, where
/// tokenizers differ, and of Append where the first one says its tokenizer and another does not.
std::string joined_tokenizer(Joining joining, const std::vector<std::string>& inputs,
                             const std::vector<layout::Manifest>& manifests);

/// Whether shard `number` of `out`, which an earlier run finished, is the one in folder `from`: shard.json is the same
/// and the files are as long as it says. Throws NotFound, IoError.
bool has_shard(const DatasetFolder& out, std::uint64_t number, const std::string& from, const layout::Format& format,
               const layout::ShardInfo& shard);

/// Publishes the shard in folder `from` as shard `number` of `out`: hard-linked, else reflinked, else copied.
void copy_shard(const std::string& from, const layout::Format& format, const layout::ShardInfo& shard,
                DatasetFolder& out, std::uint64_t number);

}  // namespace penstock::writer
