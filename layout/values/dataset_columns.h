// DatasetColumns: the columns of all shards of an opened dataset as one.
//
// Codes of a category are those of the dataset: the names of all shards in the order of their first appearance. A shard
// whose table begins like that needs no other codes than its own. Immutable; any thread.
#pragma once

#include "layout/dataset/shard.h"
#include "layout/values/category_union.h"
#include "layout/values/column_types.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace penstock::layout {

class DatasetColumns {
 public:
  /// `types` are the columns of the dataset at `path`, `shards` its shards, which outlive this. Throws Corruption where
  /// counts or sizes cannot be.
  DatasetColumns(const std::string& path, const ValueTypes& types, const std::vector<Shard>& shards);

  [[nodiscard]] const ValueTypes& types() const noexcept { return types_; }
  /// Of a category; empty for other columns.
  [[nodiscard]] const Categories& categories(std::size_t column) const { return categories_[column]; }
  /// Prefix sums of the shards' entries, size shards + 1: value i of a column is of entry i.
  [[nodiscard]] const std::vector<std::uint64_t>& entry_starts() const noexcept { return entry_starts_; }

  /// Where the column lies in the shard's file of columns.
  [[nodiscard]] const ColumnPlace& place(std::uint64_t shard, std::size_t column) const noexcept {
    return places_[shard * types_.size() + column].place;
  }
  /// Its stored values where they are in memory, and nothing is to be read; else null.
  [[nodiscard]] const std::byte* kept(std::uint64_t shard, std::size_t column) const noexcept {
    return places_[shard * types_.size() + column].kept;
  }
  /// Of a category, for each code of the shard's own table that of the dataset's.
  [[nodiscard]] const UnionCodes& codes(std::uint64_t shard, std::size_t column) const noexcept {
    return *places_[shard * types_.size() + column].codes;
  }
  /// Writes `count` values to `out`, as they are given out, of those stored at `stored`. Throws Corruption for a code
  /// that the shard's table has not.
  void give(std::uint64_t shard, std::size_t column, const std::byte* stored, std::uint64_t count,
            std::byte* out) const;

 private:
  struct Placed {
    ColumnPlace place;
    const std::byte* kept = nullptr;
    std::shared_ptr<const UnionCodes> codes;  // of a category
  };

  [[noreturn]] void raise_code(std::uint64_t shard, std::size_t column, std::int64_t code) const;

  const std::vector<Shard>& shards_;
  ValueTypes types_;
  std::vector<Categories> categories_;
  std::vector<std::uint64_t> entry_starts_;
  std::vector<Placed> places_;  // shard after shard
};

}  // namespace penstock::layout
