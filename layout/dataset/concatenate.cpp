// Several opened datasets as one. Nothing is copied but the shard tables.
#include "core/base/error.h"
#include "layout/dataset.h"
#include "layout/dataset/digest.h"
#include "layout/dataset/format.h"
#include "layout/dataset/manifest.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace penstock::layout {
namespace {

const char* name_of(SpanKind kind) {
  switch (kind) {
    case SpanKind::None: return "no spans";
    case SpanKind::Compact: return "spans in the compact layout";
    case SpanKind::Ids: return "spans in the ids layout";
    case SpanKind::Opaque: return "opaque documents";
    case SpanKind::Megatron: return "Megatron's documents";
    case SpanKind::Arrays: return "documents of field arrays";
    case SpanKind::Bounds: return "documents told by their bounds";
  }
  return "unknown spans";
}

void check_same(const Dataset& a, const Dataset& b) {
  const auto check = [&](const char* what, const std::string& seen, const std::string& other) {
    if (seen == other) return;
    raise(ErrorKind::InvalidArgument, "{} and {} do not go together: {} {} and {}", a.path, b.path, what, excerpt(seen),
          excerpt(other));
  };
  check("kind", a.kind, b.kind);
  check("mode", a.mode, b.mode);
  check("fields", a.schema.json(), b.schema.json());
  check("codec", a.codec_json, b.codec_json);
  check("documents' token", a.token_rule, b.token_rule);
  if (a.columns != b.columns) {
    const auto text = [](const Dataset& dataset) {
      return dataset.columns.empty() ? std::string("none") : column_types_json(dataset.columns);
    };
    check("columns", text(a), text(b));
  }
  if (a.features_fingerprint != b.features_fingerprint) {
    raise(ErrorKind::InvalidArgument, "{} and {} do not go together: the names of their features differ", a.path,
          b.path);
  }
  if (a.spans != b.spans) {
    raise(ErrorKind::InvalidArgument, "{} has {}, {} has {}: convert one of them first (`penstock convert --layout`)",
          a.path, name_of(a.spans), b.path, name_of(b.spans));
  }
  // Ids of two vocabularies in one stream are never meant; a tokenizer that is not known may be the same.
  if (a.tokenizer_json == "null" || b.tokenizer_json == "null") return;
  if (tokenizer_of_ids(a.tokenizer_json) == tokenizer_of_ids(b.tokenizer_json)) return;
  check("tokenizer", a.tokenizer_json, b.tokenizer_json);
}

// What combining them on disk gives.
std::string combined_fingerprint(const Dataset& dataset) {
  Fingerprint fingerprint(dataset.mode, dataset.schema.json(), dataset.codec_json);
  for (const Shard& shard : dataset.shards) {
    fingerprint.add_shard(shard.records, shard.field_digests, shard.span_digest);
  }
  return fingerprint.hex();
}

std::string foreign_fingerprint(const std::vector<DatasetPtr>& datasets) {
  Digest digest;
  digest.update("penstock concatenation\n");
  for (const DatasetPtr& dataset : datasets) digest.update(dataset->fingerprint + "\n");
  return digest.hex();
}

}  // namespace

DatasetPtr concatenate(const std::vector<DatasetPtr>& datasets) {
  if (datasets.empty()) raise(ErrorKind::InvalidArgument, "no datasets to concatenate");
  if (datasets.size() == 1) return datasets[0];
  auto result = std::make_shared<Dataset>(*datasets[0]);
  for (std::size_t i = 1; i < datasets.size(); ++i) {
    check_same(*result, *datasets[i]);
    if (result->tokenizer_json == "null") result->tokenizer_json = datasets[i]->tokenizer_json;
    result->shards.insert(result->shards.end(), datasets[i]->shards.begin(), datasets[i]->shards.end());
    for (const auto& store : datasets[i]->stores) result->add_store(store);
  }
  const bool ours = result->kind == kFormatName && result->token_rule.empty();
  result->fingerprint = ours ? combined_fingerprint(*result) : foreign_fingerprint(datasets);
  result->path = fmt::format("{} … {}", datasets.front()->path, datasets.back()->path);
  result->finish();
  return result;
}

DatasetPtr select_shards(const DatasetPtr& dataset, const std::vector<std::uint64_t>& numbers) {
  const std::uint64_t count = dataset->shards.size();
  if (numbers.empty()) raise(ErrorKind::InvalidArgument, "{}: no shards are selected", dataset->path);
  std::vector<bool> seen(count);
  auto result = std::make_shared<Dataset>(*dataset);
  result->shards.clear();
  std::string names;
  for (const std::uint64_t number : numbers) {
    if (number >= count) {
      raise(ErrorKind::InvalidArgument, "{}: there is no shard {}: they are from 0 to {}", dataset->path, number,
            count - 1);
    }
    if (seen[number]) raise(ErrorKind::InvalidArgument, "{}: shard {} is selected twice", dataset->path, number);
    seen[number] = true;
    result->shards.push_back(dataset->shards[number]);
    names += fmt::format("{}\n", number);
  }
  if (numbers.size() == count && std::is_sorted(numbers.begin(), numbers.end())) return dataset;
  if (result->kind == kFormatName && result->token_rule.empty()) {
    result->fingerprint = combined_fingerprint(*result);
  } else {
    Digest digest;
    digest.update("penstock selection of shards\n" + dataset->fingerprint + "\n" + names);
    result->fingerprint = digest.hex();
  }
  result->path = fmt::format("{} ({} of {} shards)", dataset->path, numbers.size(), count);
  result->finish();
  return result;
}

}  // namespace penstock::layout
