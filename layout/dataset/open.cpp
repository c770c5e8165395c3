#include "layout/dataset.h"
#include "layout/dataset/folder.h"
#include "layout/dataset/format.h"
#include "layout/dataset/manifest.h"
#include "layout/reading/huge_pages.h"

#include <utility>

namespace penstock::layout {
namespace {

SpanKind span_kind(const Format& format) {
  if (format.mode == kModeTokens) return SpanKind::None;
  if (format.mode == kModeOpaque) return SpanKind::Opaque;
  return format.is_compact() ? SpanKind::Compact : SpanKind::Ids;
}

File& file_of(Shard& shard, std::string_view name) {
  if (name == kStreamName) return shard.stream;
  if (name == kDataName) return shard.data;
  if (name == kColumnsName) return shard.columns;
  return name == kIndexName ? shard.index : shard.directory;
}

Shard make_shard(const std::shared_ptr<const Paths>& paths, const char* folder, const Format& format,
                 ShardInfo&& info) {
  Shard shard;
  shard.records = info.records;
  shard.spans = info.spans;
  shard.entries = info.entries;
  for (const auto& [name, bytes] : shard_files(format, info)) {
    file_of(shard, name) = File(paths, folder, name, bytes);
  }
  shard.name = std::move(info.name);
  shard.field_digests = std::move(info.field_digests);
  shard.span_digest = info.span_digest;
  shard.shard_columns = std::move(info.columns);
  return shard;
}

// The names of all shards, end to end, each with its '\0'.
std::shared_ptr<const Paths> paths_of(const Location& folder, const std::vector<ShardInfo>& shards) {
  auto paths = std::make_shared<Paths>();
  paths->root = folder.path;
  while (!folder.store->is_far() && paths->root.size() > 1 && paths->root.ends_with('/')) paths->root.pop_back();
  paths->real_root = folder.store->resolve(folder.path);
  paths->store = folder.store.get();
  for (const ShardInfo& shard : shards) paths->folders.append(shard.name).push_back('\0');
  return paths;
}

}  // namespace

DatasetPtr open_dataset(const Location& location, Checks checks) {
  Manifest manifest = read_manifest(*location.store, location.path);
  auto dataset = std::make_shared<Dataset>();
  dataset->path = location.path;
  dataset->kind = kFormatName;
  dataset->spans = span_kind(manifest.format);
  dataset->stored_record_bytes = manifest.format.stored_record_bytes();
  dataset->shards.reserve(manifest.shards.size());
  advise_huge_pages(dataset->shards.data(), dataset->shards.capacity() * sizeof(Shard));
  const std::shared_ptr<const Paths> paths = paths_of(location, manifest.shards);
  const char* folder = paths->folders.c_str();
  for (ShardInfo& info : manifest.shards) {
    const std::size_t length = info.name.size() + 1;
    dataset->shards.push_back(make_shard(paths, folder, manifest.format, std::move(info)));
    dataset->shards.back().checks = checks;
    folder += length;
  }
  dataset->mode = std::move(manifest.format.mode);
  dataset->schema = std::move(manifest.format.schema);
  dataset->columns = std::move(manifest.format.columns);
  dataset->codec_json = std::move(manifest.format.codec_json);
  dataset->tokenizer_json = std::move(manifest.tokenizer_json);
  dataset->fingerprint = std::move(manifest.fingerprint);
  if (manifest.features) {
    dataset->features = path_in(location.path, manifest.features->folder);
    dataset->features_fingerprint = std::move(manifest.features->fingerprint);
  }
  dataset->stores = {location.store};
  dataset->finish();
  return dataset;
}

}  // namespace penstock::layout
