#include "layout/dataset/dataset_files.h"

#include "layout/dataset/format.h"

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

}  // namespace penstock::layout
