#include "writer/features.h"

#include "core/base/error.h"
#include "core/io/local/local_store.h"
#include "layout/folder.h"
#include "layout/format.h"
#include "writer/commit.h"
#include "writer/dataset_writer.h"

#include <span>
#include <string_view>
#include <unordered_set>

namespace penstock::writer {
namespace {

constexpr const char* kRawCodecJson = R"({"name":"raw"})";

// As an opaque dataset of one shard, so that equal names have equal fingerprints.
std::string write_dataset(const std::string& path, const FeatureTable& features) {
  WriterOptions options;
  options.format.mode = layout::kModeOpaque;
  options.format.codec_json = kRawCodecJson;
  options.format.columns = features.columns;
  options.categories = features.categories;
  options.shard_bytes = UINT64_MAX;
  DatasetWriter writer(path, options);
  std::string entries;
  std::vector<std::uint64_t> ends;
  for (const std::string& name : features.names) ends.push_back((entries += name).size());
  const std::vector<std::uint64_t> lengths(ends.size(), 0);
  const NamedValues values{{features.values.begin(), features.values.end()}, features.categories};
  writer.append_batch({}, lengths, std::as_bytes(std::span(entries)), ends, values);
  writer.commit();
  LocalStore files;
  return layout::read_manifest(files, path).fingerprint;
}

}  // namespace

void check_features(const FeatureTable& features) {
  if (features.names.empty()) raise(ErrorKind::InvalidArgument, "features: there are none");
  std::unordered_set<std::string_view> names;
  for (const std::string& name : features.names) {
    if (name.empty()) raise(ErrorKind::InvalidArgument, "features: feature {} has no name", with_commas(names.size()));
    if (!names.insert(name).second) {
      raise(ErrorKind::InvalidArgument, "features: the name \"{}\" is there twice", excerpt(name));
    }
  }
  try {
    layout::check_categories(features.columns, features.categories);
  } catch (const Error& error) {
    raise(error.kind(), "features: {}", error.what());
  }
}

std::string write_features(const std::string& path, const FeatureTable& features) {
  check_features(features);
  return write_dataset(path, features);
}

layout::FeaturesInfo write_features(DatasetFolder& out, const FeatureTable& features) {
  check_features(features);
  return out.publish_features([&](const std::string& path) { return write_dataset(path, features); });
}

layout::FeaturesInfo copy_features(const std::string& from, const layout::FeaturesInfo& features, DatasetFolder& out) {
  const std::string path = from + "/" + features.folder;
  layout::FeaturesInfo copied = out.publish_features([&](const std::string& to) { return combine({path}, to); });
  if (copied.fingerprint == features.fingerprint) return copied;
  raise(ErrorKind::Corruption, "{}: its features have fingerprint {}, the manifest beside them says {}", path,
        copied.fingerprint, features.fingerprint);
}

}  // namespace penstock::writer
