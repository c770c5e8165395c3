#include "writer/derived/joining.h"

#include "core/base/error.h"
#include "core/io/local/local_store.h"
#include "layout/dataset/folder.h"
#include "layout/dataset/format.h"
#include "writer/files/copy_file.h"
#include "writer/folder/commit.h"

namespace penstock::writer {
namespace {

// A record's gene is a number, which must mean the same in all of them.
void check_features_of(const char* task, const std::string& first, const layout::Manifest& a, const std::string& other,
                       const layout::Manifest& b) {
  if (a.features.has_value() != b.features.has_value()) {
    raise(ErrorKind::InvalidArgument, "cannot {} {} and {}: {} has features, the other has none", task, first, other,
          a.features ? first : other);
  }
  if (!a.features || a.features->fingerprint == b.features->fingerprint) return;
  raise(ErrorKind::InvalidArgument, "cannot {} {} and {}: the names of their features differ", task, first, other);
}

}  // namespace

void check_together(const char* task, const std::vector<std::string>& inputs,
                    const std::vector<layout::Manifest>& manifests) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::string difference = layout::format_difference(manifests.front().format, manifests[i].format);
    if (!difference.empty()) {
      const bool layouts = difference.starts_with("layout");
      raise(ErrorKind::InvalidArgument, "cannot {} {} and {}: {}{}", task, inputs.front(), inputs[i], difference,
            layouts ? ": convert one of them first (`penstock convert --layout`)" : "");
    }
    check_features_of(task, inputs.front(), manifests.front(), inputs[i], manifests[i]);
  }
}

// Ids of two tokenizers in one stream would be nonsense; where one dataset does not say, neither does the result.
std::string common_tokenizer(const char* task, const std::vector<std::string>& inputs,
                             const std::vector<layout::Manifest>& manifests) {
  std::string common;
  bool all = true;
  for (std::size_t i = 0; i < manifests.size(); ++i) {
    const std::string& tokenizer = manifests[i].tokenizer_json;
    all = all && tokenizer != "null";
    if (tokenizer == "null") continue;
    if (common.empty()) common = tokenizer;
    if (common != tokenizer) {
      raise(ErrorKind::InvalidArgument, "cannot {}: {} has tokenizer {}, others have {}", task, inputs[i],
            excerpt(tokenizer), excerpt(common));
    }
  }
  return all ? common : "null";
}

bool has_shard(const DatasetFolder& out, std::uint64_t number, const std::string& from, const layout::Format& format,
               const layout::ShardInfo& shard) {
  LocalStore files;
  layout::ShardInfo there = shard;
  there.name = out.shard_name(number);
  const auto text = [&](const std::string& folder) {
    return layout::read_manifest_text(files, folder + "/" + layout::kShardManifestName, Links::BelowParent);
  };
  if (text(out.path() + "/" + there.name) != text(from)) return false;
  try {
    check_sizes(out.path(), format, there);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::IoError) throw;
    return false;
  }
  return true;
}

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

}  // namespace penstock::writer
