#include "writer/shuffle/shuffled_values.h"

#include "core/base/digest.h"
#include "layout/dataset/folder.h"

#include <cstring>
#include <utility>

namespace penstock::writer {

ShuffledValues::ShuffledValues(std::string path, const layout::Manifest& manifest)
    : path_(std::move(path)), manifest_(manifest), unions_(manifest.format.columns.size()) {
  const ValueTypes& types = manifest.format.columns;
  for (std::size_t c = 0; c < types.size(); ++c) {
    bytes_ += types[c].bytes();
    for (const layout::ShardInfo& shard : manifest.shards) {
      if (types[c].is_category) unions_[c].add(shard.columns->categories[c]);
    }
    names_.push_back(unions_[c].names());
    first_.push_back(unions_[c].is_one_table() ? names_.back() : layout::Categories());
  }
}

std::string ShuffledValues::digest() const {
  if (!manifest_.format.has_columns()) return "";
  Digest digest;
  digest.update(layout::column_types_json(manifest_.format.columns));
  for (const layout::ShardInfo& shard : manifest_.shards) {
    for (std::size_t c = 0; c < shard.columns->digests.size(); ++c) {
      digest.update(shard.columns->digests[c]);
      if (!shard.columns->categories[c]) continue;
      digest.update_u64(shard.columns->categories[c]->size());
      for (const std::string& name : *shard.columns->categories[c]) {
        digest.update_u64(name.size());
        digest.update(name);
      }
    }
  }
  return digest.hex();
}

void ShuffledValues::open_shard(std::size_t shard) {
  const layout::Format& format = manifest_.format;
  if (!format.has_columns()) return;
  const layout::ShardInfo& info = manifest_.shards[shard];
  reader_.emplace(layout::path_in(path_, info.name), format, info);
  codes_.assign(format.columns.size(), nullptr);
  for (std::size_t c = 0; c < codes_.size(); ++c) {
    if (format.columns[c].is_category) codes_[c] = unions_[c].add(info.columns->categories[c]);
  }
}

std::span<const std::byte> ShuffledValues::of(std::uint64_t document) {
  values_.clear();
  if (!manifest_.format.has_columns()) return values_;
  const ColumnValues& values = reader_->values(document);
  for (std::size_t c = 0; c < values.size(); ++c) {
    values_.insert(values_.end(), values[c].begin(), values[c].end());
    if (codes_[c] == nullptr) continue;
    std::byte* const at = values_.data() + values_.size() - sizeof(std::int32_t);
    std::int32_t code = 0;
    std::memcpy(&code, at, sizeof(code));
    if (code < 0) continue;
    code = (*codes_[c])[static_cast<std::size_t>(code)];
    std::memcpy(at, &code, sizeof(code));
  }
  return values_;
}

ColumnValues ShuffledValues::split(std::span<const std::byte> bytes) const {
  ColumnValues values;
  for (const ValueType& type : manifest_.format.columns) {
    values.push_back(bytes.first(type.bytes()));
    bytes = bytes.subspan(type.bytes());
  }
  return values;
}

}  // namespace penstock::writer
