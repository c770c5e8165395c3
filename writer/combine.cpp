#include "core/base/error.h"
#include "core/io/local/local_store.h"
#include "layout/folder.h"
#include "layout/format.h"
#include "writer/commit.h"
#include "writer/copy_file.h"
#include "writer/dataset_folder.h"
#include "writer/features.h"

namespace penstock::writer {
namespace {

void copy_shard(const std::string& from, const layout::Format& format, const layout::ShardInfo& shard,
                DatasetFolder& out, std::uint64_t number) {
  const std::string partial = out.make_partial(number);
  const std::string path = out.path() + "/" + partial;
  try {
    const Descriptor folder = open_folder(out.fd(), partial, path);
    copy_files(from, layout::shard_files(format, shard), folder.get(), path);
    const std::string said = from + "/" + layout::kShardManifestName;
    copy_file(said, open_regular(said).second, folder.get(), layout::kShardManifestName,
              path + "/" + layout::kShardManifestName);
    sync_folder(folder.get(), path);
    out.publish_shard(partial, number);
  } catch (...) {
    remove_folder(out.fd(), partial);
    throw;
  }
}

// Ids of two tokenizers in one stream would be nonsense; where one dataset does not say, neither does the result.
std::string common_tokenizer(const std::vector<std::string>& inputs, const std::vector<layout::Manifest>& manifests) {
  std::string common;
  bool all = true;
  for (std::size_t i = 0; i < manifests.size(); ++i) {
    const std::string& tokenizer = manifests[i].tokenizer_json;
    all = all && tokenizer != "null";
    if (tokenizer == "null") continue;
    if (common.empty()) common = tokenizer;
    if (common != tokenizer) {
      raise(ErrorKind::InvalidArgument, "cannot combine: {} has tokenizer {}, others have {}", inputs[i],
            excerpt(tokenizer), excerpt(common));
    }
  }
  return all ? common : "null";
}

// A record's gene is a number, which must mean the same in all of them.
void check_features_of(const std::string& first, const layout::Manifest& a, const std::string& other,
                       const layout::Manifest& b) {
  if (a.features.has_value() != b.features.has_value()) {
    raise(ErrorKind::InvalidArgument, "cannot combine {} and {}: {} has features, the other has none", first, other,
          a.features ? first : other);
  }
  if (!a.features || a.features->fingerprint == b.features->fingerprint) return;
  raise(ErrorKind::InvalidArgument, "cannot combine {} and {}: the names of their features differ", first, other);
}

}  // namespace

std::string combine(const std::vector<std::string>& inputs, const std::string& out) {
  if (inputs.empty()) raise(ErrorKind::InvalidArgument, "combine: no datasets");
  LocalStore files;
  std::vector<layout::Manifest> manifests;
  for (const std::string& input : inputs) {
    manifests.push_back(layout::read_manifest(files, input));
    const std::string difference = layout::format_difference(manifests.front().format, manifests.back().format);
    if (!difference.empty()) {
      const bool layouts = difference.starts_with("layout");
      raise(ErrorKind::InvalidArgument, "cannot combine {} and {}: {}{}", inputs.front(), input, difference,
            layouts ? ": convert one of them first (`penstock convert --layout`)" : "");
    }
    check_features_of(inputs.front(), manifests.front(), input, manifests.back());
  }
  layout::Manifest combined;
  combined.format = manifests.front().format;
  combined.tokenizer_json = common_tokenizer(inputs, manifests);
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
