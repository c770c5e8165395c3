#include "core/base/error.h"
#include "core/io/local/local_store.h"
#include "layout/folder.h"
#include "layout/format.h"
#include "writer/commit.h"
#include "writer/dataset_folder.h"
#include "writer/features.h"
#include "writer/joining.h"

namespace penstock::writer {

std::string combine(const std::vector<std::string>& inputs, const std::string& out) {
  if (inputs.empty()) raise(ErrorKind::InvalidArgument, "combine: no datasets");
  LocalStore files;
  std::vector<layout::Manifest> manifests;
  manifests.reserve(inputs.size());
  for (const std::string& input : inputs) manifests.push_back(layout::read_manifest(files, input));
  check_together("combine", inputs, manifests);
  layout::Manifest combined;
  combined.format = manifests.front().format;
  combined.tokenizer_json = common_tokenizer("combine", inputs, manifests);
  DatasetFolder folder(out, Access::Whole, false);
  try {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      for (layout::ShardInfo& shard : manifests[i].shards) {
        const std::uint64_t number = combined.shards.size();
        copy_shard(inputs[i] + "/" + shard.name, combined.format, shard, folder, number);
        shard.name = folder.shard_name(number);
        combined.shards.push_back(std::move(shard));
      }
    }
    if (manifests.front().features) {
      combined.features = copy_features(inputs.front(), *manifests.front().features, folder);
    }
    folder.publish_manifest(combined);
  } catch (...) {
    folder.abort();
    throw;
  }
  return layout::fingerprint_of(combined.format, combined.shards);
}

}  // namespace penstock::writer
