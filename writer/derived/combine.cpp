#include "writer/derived/combine.h"

#include "core/base/error.h"
#include "core/io/local/local_store.h"
#include "layout/dataset/folder.h"
#include "layout/dataset/format.h"
#include "writer/derived/joining.h"

#include <cstdint>
#include <optional>
#include <set>
#include <utility>

namespace penstock::writer {

namespace {

std::uint64_t bytes_of(const layout::Format& format, const layout::ShardInfo& shard) {
  std::uint64_t bytes = 0;
  for (const auto& [name, size] : layout::shard_files(format, shard)) bytes += size;
  return bytes;
}

// Shards of all inputs become those of `folder`, and of `combined`; what is there already and is the same stays.
void take_shards(const std::vector<std::string>& inputs, std::vector<layout::Manifest>& manifests,
                 DatasetFolder& folder, layout::Manifest& combined, Progress& progress) {
  const std::vector<std::uint64_t> numbers = folder.finished();
  const std::set<std::uint64_t> there(numbers.begin(), numbers.end());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    for (layout::ShardInfo& shard : manifests[i].shards) {
      const std::uint64_t number = combined.shards.size();
      const std::string from = layout::path_in(inputs[i], shard.name);
      const bool is_there = there.contains(number);
      if (!is_there || !has_shard(folder, number, from, combined.format, shard)) {
        if (is_there) folder.remove_shards({number});
        copy_shard(from, combined.format, shard, folder, number);
      }
      progress.passed(bytes_of(combined.format, shard));
      shard.name = folder.shard_name(number);
      combined.shards.push_back(std::move(shard));
    }
  }
  folder.remove_shards({there.lower_bound(combined.shards.size()), there.end()});
}

// The fingerprint of the dataset at `out`, if it is the one to be made: a run may be killed before it can say so.
std::optional<std::string> made_before(LocalStore& files, const std::string& out,
                                       const std::vector<layout::Manifest>& manifests, layout::Manifest wanted) {
  if (!layout::has_manifest(files, out)) return std::nullopt;
  const layout::Manifest there = layout::read_manifest(files, out);
  for (const layout::Manifest& each : manifests) {
    wanted.shards.insert(wanted.shards.end(), each.shards.begin(), each.shards.end());
  }
  if (wanted.shards.size() != there.shards.size()) return std::nullopt;
  for (std::size_t i = 0; i < there.shards.size(); ++i) wanted.shards[i].name = there.shards[i].name;
  wanted.features = manifests.front().features;
  if (wanted.features && there.features) wanted.features->folder = there.features->folder;
  if (layout::write_manifest(wanted) != layout::write_manifest(there)) return std::nullopt;
  return there.fingerprint;
}

}  // namespace

std::string combine(const std::vector<std::string>& inputs, const std::string& out, bool resume, bool overwrite,
                    const TellProgress& tell) {
  if (inputs.empty()) raise(ErrorKind::InvalidArgument, "combine: no datasets");
  LocalStore files;
  std::vector<layout::Manifest> manifests;
  manifests.reserve(inputs.size());
  for (const std::string& input : inputs) manifests.push_back(layout::read_manifest(files, input));
  layout::Manifest combined;
  combined.format = manifests.front().format;
  combined.tokenizer_json = joined_tokenizer(Joining::Combine, inputs, manifests);
  if (resume && !overwrite) {
    if (std::optional<std::string> fingerprint = made_before(files, out, manifests, combined)) return *fingerprint;
  }
  Progress progress(tell);
  std::uint64_t total = 0;
  for (const layout::Manifest& manifest : manifests) {
    for (const layout::ShardInfo& shard : manifest.shards) total += bytes_of(manifest.format, shard);
  }
  progress.expect(total);
  DatasetFolder folder(out, resume ? Access::Resume : Access::Whole, overwrite);
  try {
    take_shards(inputs, manifests, folder, combined, progress);
    if (manifests.front().features) {
      combined.features = copy_features(inputs.front(), *manifests.front().features, folder);
    }
    progress.end();  // which may stop it, the last time
    folder.publish_manifest(combined);
  } catch (...) {
    folder.abort();
    throw;
  }
  return layout::fingerprint_of(combined.format, combined.shards);
}

layout::FeaturesInfo copy_features(const std::string& from, const layout::FeaturesInfo& features, DatasetFolder& out) {
  const std::string path = layout::path_in(from, features.folder);
  layout::FeaturesInfo copied = out.publish_features([&](const std::string& to) { return combine({path}, to); });
  if (copied.fingerprint == features.fingerprint) return copied;
  raise(ErrorKind::Corruption, "{}: its features have fingerprint {}, the manifest beside them says {}", path,
        copied.fingerprint, features.fingerprint);
}

}  // namespace penstock::writer
