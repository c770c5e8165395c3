#include "layout/dataset.h"
#include "layout/folder.h"
#include "layout/format.h"
#include "layout/manifest.h"

#include <utility>

namespace penstock::layout {
namespace {

SpanKind span_kind(const Format& format) {
  if (format.mode == kModeTokens) return SpanKind::None;
  if (format.mode == kModeOpaque) return SpanKind::Opaque;
  return format.is_compact() ? SpanKind::Compact : SpanKind::Ids;
}

File& file_of(Shard& shard, const std::string& name) {
  if (name == kStreamName) return shard.stream;
  if (name == kDataName) return shard.data;
  return name == kIndexName ? shard.index : shard.directory;
}

Shard make_shard(const Location& folder, const Format& format, ShardInfo&& info) {
  Shard shard;
  shard.records = info.records;
  shard.spans = info.spans;
  shard.entries = info.entries;
  for (const auto& [name, bytes] : shard_files(format, info)) {
    file_of(shard, name) = File{folder.path + "/" + info.name + "/" + name, bytes, folder.store.get()};
  }
  shard.name = std::move(info.name);
  shard.field_digests = std::move(info.field_digests);
  shard.span_digest = std::move(info.span_digest);
  return shard;
}

}  // namespace

DatasetPtr open_dataset(const Location& location) {
  Manifest manifest = read_manifest(*location.store, location.path);
  auto dataset = std::make_shared<Dataset>();
  dataset->path = location.path;
  dataset->kind = kFormatName;
  dataset->spans = span_kind(manifest.format);
  dataset->stored_record_bytes = manifest.format.stored_record_bytes();
  dataset->shards.reserve(manifest.shards.size());
  for (ShardInfo& info : manifest.shards) {
    dataset->shards.push_back(make_shard(location, manifest.format, std::move(info)));
  }
  dataset->mode = std::move(manifest.format.mode);
  dataset->schema = std::move(manifest.format.schema);
  dataset->codec_json = std::move(manifest.format.codec_json);
  dataset->tokenizer_json = std::move(manifest.tokenizer_json);
  dataset->fingerprint = std::move(manifest.fingerprint);
  dataset->stores = {location.store};
  dataset->finish();
  return dataset;
}

}  // namespace penstock::layout
