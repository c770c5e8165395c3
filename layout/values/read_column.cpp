#include "layout/values/read_column.h"

#include "core/base/error.h"
#include "layout/dataset/format.h"
#include "layout/reading/block_reader.h"
#include "layout/values/dataset_columns.h"

#include <algorithm>
#include <vector>

namespace penstock::layout {
namespace {

constexpr std::uint64_t kColumnChunkBytes = 4U << 20;

// Values [first, first + count) of one shard.
void read_part(const Dataset& dataset, std::uint64_t number, std::size_t column, std::uint64_t first,
               std::uint64_t count, std::byte* out, const StoreChoice& through) {
  const Shard& shard = dataset.shards[number];
  const ColumnPlace& place = dataset.column_table->place(number, column);
  if (const std::byte* const kept = dataset.column_table->kept(number, column)) {
    return dataset.column_table->give(number, column, kept + first * place.value_bytes, count, out);
  }
  const File values =
      shard.checks == Checks::None ? File() : shard.columns.beside(kColumnsCrcName, crc_bytes(shard.columns.bytes));
  const std::uint64_t given_bytes = dataset.columns[column].bytes();
  const std::uint64_t step = std::max<std::uint64_t>(1, kColumnChunkBytes / place.value_bytes);
  BlockReader reader(shard.columns, values, through);
  for (const std::uint64_t end = first + count; first < end; first += std::min(step, end - first)) {
    const std::uint64_t part = std::min(step, end - first);
    const auto bytes = reader.read(place.offset + first * place.value_bytes, part * place.value_bytes);
    dataset.column_table->give(number, column, bytes.data(), part, out);
    out += part * given_bytes;
  }
}

}  // namespace

void read_column(const Dataset& dataset, std::size_t column, std::uint64_t first, std::uint64_t count, std::byte* out,
                 const StoreChoice& through) {
  const std::vector<std::uint64_t>& starts = dataset.column_table->entry_starts();
  const std::uint64_t size = starts.back();
  if (first > size || count > size - first) {
    raise(ErrorKind::InvalidArgument, "values {} to {} of a column of {}", with_commas(first),
          with_commas(first + count), with_commas(size));
  }
  if (count == 0) return;
  const std::uint64_t end = first + count;
  const std::uint64_t given_bytes = dataset.columns[column].bytes();
  for (std::uint64_t shard = Dataset::shard_of(starts, first); first < end; ++shard) {
    const std::uint64_t part = std::min(end, starts[shard + 1]) - first;
    if (part == 0) continue;
    read_part(dataset, shard, column, first - starts[shard], part, out, through);
    out += part * given_bytes;
    first += part;
  }
}

}  // namespace penstock::layout
