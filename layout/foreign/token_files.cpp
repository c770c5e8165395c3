#include "layout/foreign/token_files.h"

#include "core/base/error.h"
#include "layout/dataset/format.h"

#include <utility>

namespace penstock::layout {

DatasetPtr finish_foreign(std::shared_ptr<Dataset> dataset, const Digest& digest) {
  const std::string& first = dataset->shards.front().name;
  if (dataset->path.empty()) {
    dataset->path = dataset->shards.size() == 1 ? first : fmt::format("{} … {}", first, dataset->shards.back().name);
  }
  dataset->mode = dataset->spans == SpanKind::None ? kModeTokens : kModeStream;
  dataset->stored_record_bytes = dataset->schema.record_bytes();
  dataset->codec_json = "null";
  dataset->tokenizer_json = "null";
  dataset->fingerprint = digest.hex();
  dataset->finish();
  return dataset;
}

Schema token_schema(std::string_view type) {
  return Schema::parse(fmt::format(R"([["token","{}"]])", type));
}

std::string given_token_type(const std::string& descr_json, const std::string& path) {
  if (descr_json.empty()) return {};
  const Schema given = Schema::parse(descr_json);
  const Leaf& leaf = given.leaves().front();
  const bool is_scalar = given.leaves().size() == 1 && leaf.dims.empty() && leaf.name == "token";
  if (!is_scalar || (leaf.kind != 'u' && leaf.kind != 'i')) {
    raise(ErrorKind::InvalidArgument, "{}: dtype {}: tokens are one integer each: \"u2\", \"u4\", \"i4\", …", path,
          excerpt(given.json()));
  }
  return fmt::format("{}{}{}", leaf.item_bytes == 1 ? '|' : '<', leaf.kind, leaf.item_bytes);
}

}  // namespace penstock::layout
