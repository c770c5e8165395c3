#include "layout/foreign/megatron.h"

#include "core/base/error.h"
#include "layout/dataset.h"
#include "layout/dataset/format.h"
#include "layout/reading/reads.h"

#include <utility>

namespace penstock::layout {
namespace {

Shard open_pair(const Location& location, Digest& digest) {
  const std::string prefix = megatron_prefix(location.path);
  const ForeignFile idx({location.store, prefix + ".idx"});
  const ForeignFile bin({location.store, prefix + ".bin"});
  auto index = std::make_shared<MegatronIndex>(scan_megatron_index(idx, bin.bytes(), digest));
  bin.add_to(digest);
  Shard shard;
  shard.name = prefix;
  shard.records = index->tokens;
  shard.spans = index->documents;
  shard.stream = bin.file();
  shard.index = idx.file();
  shard.megatron = std::move(index);
  return shard;
}

}  // namespace

std::string megatron_prefix(const std::string& path) {
  for (const std::string_view suffix : {".bin", ".idx"}) {
    if (path.ends_with(suffix)) return path.substr(0, path.size() - suffix.size());
  }
  return path;
}

std::uint64_t megatron_token(const Shard& shard, const std::byte* pointer) {
  const auto byte = load<std::uint64_t>(pointer);
  if (byte > shard.stream.bytes || byte % shard.megatron->item_bytes != 0) {
    raise(ErrorKind::Corruption, "{}: a sequence at byte {} of {}: the file changed after it was opened",
          shard.index.path(), byte, with_commas(shard.stream.bytes));
  }
  return byte / shard.megatron->item_bytes;
}

DatasetPtr open_megatron(const std::vector<Location>& prefixes) {
  if (prefixes.empty()) raise(ErrorKind::InvalidArgument, "no Megatron prefixes to open");
  auto dataset = std::make_shared<Dataset>();
  Digest digest;
  digest.update("penstock megatron\n");
  for (const Location& prefix : prefixes) {
    dataset->shards.push_back(open_pair(prefix, digest));
    dataset->add_store(prefix.store);
    const Shard& first = dataset->shards.front();
    const Shard& last = dataset->shards.back();
    if (std::string_view(first.megatron->type) != last.megatron->type) {
      raise(ErrorKind::InvalidArgument, "{}: tokens of type {}, but those of {} are {}", last.name, last.megatron->type,
            first.name, first.megatron->type);
    }
  }
  const Shard& first = dataset->shards.front();
  dataset->path = prefixes.size() == 1 ? first.name : fmt::format("{} … {}", first.name, dataset->shards.back().name);
  dataset->kind = "megatron";
  dataset->mode = kModeStream;
  dataset->spans = SpanKind::Megatron;
  dataset->schema = Schema::parse(fmt::format(R"([["token","{}"]])", first.megatron->type));
  dataset->stored_record_bytes = first.megatron->item_bytes;
  dataset->codec_json = "null";
  dataset->tokenizer_json = "null";
  dataset->fingerprint = digest.hex();
  dataset->finish();
  return dataset;
}

}  // namespace penstock::layout
