// ColumnWriter: the columns of one shard, from values that come document by document to columns.bin.
//
// Values are gathered in a file for each column, since one lies behind the other in the end and nobody knows how many
// there will be. One thread at a time. Memory is a buffer of 64 KiB a column, and the names of categories.
#pragma once

#include "core/rows/value_type.h"
#include "layout/values/column_types.h"
#include "writer/folder/system.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace penstock::writer {

/// Values of documents that follow one another: for each column [documents, dims…], packed; of a category int32 codes
/// of names that go with them, -1 where there is none.
using ColumnValues = std::vector<std::span<const std::byte>>;

class ColumnWriter {
 public:
  /// Makes its files in the folder `at`, shown as `path`. `first`: the names that each category's table begins with.
  ColumnWriter(int at, std::string path, ValueTypes types, const std::vector<layout::Categories>& first);

  /// Document `i` of `values`; its codes are numbers in `names`, which only grow from call to call.
  void add(const ColumnValues& values, std::uint64_t i, const std::vector<layout::Categories>& names);

  /// Of values, codes as int32.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

  /// Writes columns.bin and removes the other files.
  std::shared_ptr<const layout::ShardColumns> finish();

 private:
  struct Gathered {
    std::string name;
    Descriptor file;
    std::vector<std::byte> buffer;
    std::uint64_t written = 0;
  };
  struct Category {
    layout::Categories names;           // the shard's table
    std::vector<std::int32_t> code_of;  // by number in the writer's names; -1: not seen yet
  };

  void flush(Gathered& column);
  std::int32_t code(Category& category, const layout::Categories& names, std::int32_t number) const;
  template <typename Take>
  void read_back(const Gathered& column, const Take& take) const;

  int at_;
  std::string path_;
  ValueTypes types_;
  std::uint64_t entries_ = 0;
  std::uint64_t bytes_ = 0;
  std::vector<Gathered> gathered_;
  std::vector<Category> categories_;
};

}  // namespace penstock::writer
