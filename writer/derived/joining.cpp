#include "writer/derived/joining.h"

#include "core/base/error.h"
#include "core/io/local/local_store.h"
#include "layout/dataset/folder.h"
#include "layout/dataset/format.h"
#include "writer/files/copy_file.h"
#include "writer/folder/commit.h"

namespace penstock::writer {
namespace {

constexpr const char* kNoTokenizer = "null";  // in a manifest

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

// What a dataset says stays said: that a document ends with some token, jobs on it may rely on.
void check_said(const std::vector<std::string>& inputs, const std::vector<layout::Manifest>& manifests) {
  if (manifests.front().tokenizer_json == kNoTokenizer) return;
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    if (manifests[i].tokenizer_json != kNoTokenizer) continue;
    raise(ErrorKind::InvalidArgument,
          "cannot append {1} to {0}: {0} has tokenizer {2}, {1} does not say its own: write it with tokenizer=",
          inputs[0], inputs[i], excerpt(manifests.front().tokenizer_json));
  }
}

}  // namespace

// Ids of two tokenizers in one stream would be nonsense; where one dataset does not say, neither does the result.
std::string joined_tokenizer(Joining joining, const std::vector<std::string>& inputs,
                             const std::vector<layout::Manifest>& manifests) {
  const char* task = joining == Joining::Append ? "append" : "combine";
  check_together(task, inputs, manifests);
  if (joining == Joining::Append) check_said(inputs, manifests);
  std::string common;
  bool all = true;
  for (std::size_t i = 0; i < manifests.size(); ++i) {
    const std::string& tokenizer = manifests[i].tokenizer_json;
    all = all && tokenizer != kNoTokenizer;
    if (tokenizer == kNoTokenizer) continue;
    if (common.empty()) common = tokenizer;
    if (common == tokenizer) continue;
    const std::string ids = layout::tokenizer_of_ids(tokenizer);
    if (ids != layout::tokenizer_of_ids(common)) {
      raise(ErrorKind::InvalidArgument, "cannot {}: {} has tokenizer {}, others have {}", task, inputs[i],
            excerpt(tokenizer), excerpt(common));
    }
    if (ids == common) common = tokenizer;  // an engine made some of the ids: that is said of the whole
  }
  return all ? common : kNoTokenizer;
}

bool has_shard(const DatasetFolder& out, std::uint64_t number, const std::string& from, const layout::Format& format,
               const layout::ShardInfo& shard) {
  LocalStore files;
  layout::ShardInfo there = shard;
  there.name = out.shard_name(number);
  const auto text = [&](const std::string& folder) {
    return layout::read_manifest_text(files, folder + "/" + layout::kShardManifestName, Links::BelowParent);
  };
  if (text(layout::path_in(out.path(), there.name)) != text(from)) return false;
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
  const std::string path = layout::path_in(out.path(), partial);
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
