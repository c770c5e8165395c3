#include "writer/derived/append.h"

#include "core/base/error.h"
#include "core/io/local/local_store.h"
#include "layout/dataset/folder.h"
#include "layout/dataset/format.h"
#include "writer/derived/joining.h"
#include "writer/folder/dataset_folder.h"

#include <utility>

namespace penstock::writer {
namespace {

struct AddedShard {
  std::string from;
  layout::ShardInfo info;
};

bool ends_with(const layout::Manifest& manifest, const std::vector<AddedShard>& added) {
  if (added.size() >= manifest.shards.size()) return false;
  const auto first = manifest.shards.end() - static_cast<std::ptrdiff_t>(added.size());
  std::vector<layout::ShardInfo> wanted;
  wanted.reserve(added.size());
  for (const AddedShard& each : added) wanted.push_back(each.info);
  return layout::fingerprint_of(manifest.format, {first, manifest.shards.end()}) ==
         layout::fingerprint_of(manifest.format, wanted);
}

}  // namespace

std::string append(const std::string& path, const std::vector<std::string>& more, bool resume,
                   const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  if (more.empty()) raise(ErrorKind::InvalidArgument, "append: no datasets to be added to {}", path);
  LocalStore files;
  layout::read_manifest(files, path);  // before a folder is made
  DatasetFolder folder(path, Access::Whole, true);
  try {
    std::vector<std::string> inputs{path};
    inputs.insert(inputs.end(), more.begin(), more.end());
    std::vector<layout::Manifest> manifests;
    manifests.reserve(inputs.size());
    for (const std::string& input : inputs) manifests.push_back(layout::read_manifest(files, input));
    layout::Manifest grown = manifests.front();
    grown.tokenizer_json = joined_tokenizer(Joining::Append, inputs, manifests);
    std::vector<AddedShard> added;
    for (std::size_t i = 1; i < inputs.size(); ++i) {
      for (layout::ShardInfo& shard : manifests[i].shards) {
        added.push_back({layout::path_in(inputs[i], shard.name), std::move(shard)});
      }
    }
    if (resume && ends_with(grown, added)) return layout::fingerprint_of(grown.format, grown.shards);
    for (std::size_t i = 0; i < added.size(); ++i) {
      const std::uint64_t number = grown.shards.size();
      copy_shard(added[i].from, grown.format, added[i].info, folder, number);
      added[i].info.name = folder.shard_name(number);
      grown.shards.push_back(added[i].info);
      if (progress) progress(i + 1, added.size());
    }
    folder.publish_manifest(grown);
    return layout::fingerprint_of(grown.format, grown.shards);
  } catch (...) {
    folder.abort();
    throw;
  }
}

}  // namespace penstock::writer
