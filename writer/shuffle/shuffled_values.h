// ShuffledValues: values of columns on their way through a shuffle: one document's, end to end, codes as the union of
// all shards' tables counts them.
//
// One thread at a time; shards are read one after the other.
#pragma once

#include "layout/dataset/manifest.h"
#include "layout/values/category_union.h"
#include "writer/shards/column_reader.h"
#include "writer/shards/column_writer.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace penstock::writer {

class ShuffledValues {
 public:
  /// Of the dataset at `path`; without columns it gives nothing. `manifest` outlives it.
  ShuffledValues(std::string path, const layout::Manifest& manifest);

  /// Bytes of one document's values.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  /// What tells these columns from others; "" without.
  [[nodiscard]] std::string digest() const;

  /// The shard that is read from now on. Throws as ColumnReader.
  void open_shard(std::size_t shard);
  /// Values of its document; valid until the next call.
  std::span<const std::byte> of(std::uint64_t document);

  /// Those bytes again, as a ShardWriter takes them.
  [[nodiscard]] ColumnValues split(std::span<const std::byte> bytes) const;
  /// What codes count, by column.
  [[nodiscard]] const std::vector<layout::Categories>& names() const noexcept { return names_; }
  /// What each shard's tables begin with: all names, where the input's shards have one table.
  [[nodiscard]] const std::vector<layout::Categories>& first() const noexcept { return first_; }

 private:
  std::string path_;
  const layout::Manifest& manifest_;
  std::uint64_t bytes_ = 0;
  std::vector<layout::CategoryUnion> unions_;
  std::vector<layout::Categories> names_;
  std::vector<layout::Categories> first_;
  std::optional<ColumnReader> reader_;
  std::vector<std::shared_ptr<const layout::UnionCodes>> codes_;  // of the shard; null where it is no category
  std::vector<std::byte> values_;
};

}  // namespace penstock::writer
