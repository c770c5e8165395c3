// ColumnReader: the columns of one shard, value by value, for those who rewrite a dataset.
//
// Gives values as ColumnWriter takes them. One thread at a time. Memory is 64 KiB a column.
#pragma once

#include "layout/dataset/manifest.h"
#include "layout/values/column_types.h"
#include "writer/files/input_file.h"
#include "writer/shards/column_writer.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace penstock::writer {

class ColumnReader {
 public:
  /// Of the shard in the folder `path`; of one without columns nothing can be asked. Reads the file once and compares
  /// it with the digests of the manifest: what is written again gets new check values. Throws NotFound, IoError,
  /// Corruption.
  ColumnReader(const std::string& path, const layout::Format& format, const layout::ShardInfo& shard);

  /// All values of an entry: of categories int32 codes of the shard's names. Valid until the next call. Throws
  /// Corruption for a code that cannot be.
  const ColumnValues& values(std::uint64_t entry);

  /// Of each column the names of its codes; empty where it is no category.
  [[nodiscard]] const std::vector<layout::Categories>& categories() const noexcept { return categories_; }

 private:
  struct Column {
    layout::ColumnPlace place;
    std::vector<std::byte> buffer;  // values from entry `first` on
    std::uint64_t first = 0;
    std::uint64_t count = 0;
    std::int32_t code = 0;
  };

  std::span<const std::byte> value(std::size_t c, std::uint64_t entry);

  ValueTypes types_;
  std::uint64_t entries_ = 0;
  std::optional<InputFile> file_;
  std::vector<Column> columns_;
  std::vector<layout::Categories> categories_;
  ColumnValues values_;
};

}  // namespace penstock::writer
