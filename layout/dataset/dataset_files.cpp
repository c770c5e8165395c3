#include "layout/dataset/dataset_files.h"

#include "core/base/error.h"
#include "layout/dataset/folder.h"
#include "layout/dataset/format.h"
#include "layout/dataset/manifest.h"

#include <algorithm>

namespace penstock::layout {

std::vector<std::pair<std::string, std::uint64_t>> files_in(const Dataset& dataset, const ByteStore& store) {
  std::vector<std::pair<std::string, std::uint64_t>> found;
  for (const Shard& shard : dataset.shards) {
    for (const File* file : {&shard.stream, &shard.index, &shard.directory, &shard.data, &shard.columns}) {
      if (file->store() != &store) continue;
      found.emplace_back(file->path(), file->bytes);
      if (shard.checks == Checks::None) continue;
      found.emplace_back(found.back().first + kCrcSuffix, crc_bytes(file->bytes));
    }
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());  // several shards may lie in one foreign file
  return found;
}

std::string task_of(const Dataset& dataset, std::size_t shard) {
  const Shard& asked = dataset.shards.at(shard);
  const File& any = asked.stream.store() != nullptr ? asked.stream : asked.index;
  const std::string path = any.beside(kShardManifestName, 0).path();
  std::string text;
  try {
    text = read_manifest_text(*any.store(), path, Links::BelowParent);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::NotFound) throw;
    return "null";
  }
  return parse_shard_manifest(std::move(text), path).second.task_json;
}

}  // namespace penstock::layout
