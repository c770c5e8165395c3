#include "layout/read_column.h"

#include "core/base/align.h"
#include "core/base/crc32c.h"
#include "core/base/error.h"
#include "layout/dataset_columns.h"
#include "layout/format.h"
#include "layout/reads.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <span>
#include <vector>

namespace penstock::layout {
namespace {

constexpr std::uint64_t kChunkBytes = 4U << 20;

// Both reads at once.
class Pair {
 public:
  Pair(ByteStore& files, const StoreChoice& through)
      : channel_(choose_store(through, files).open_channel(ChannelMode::MayWait)) {}

  void read(const File& file, std::uint64_t offset, std::span<std::byte> out, const File& beside,
            std::uint64_t beside_offset, std::span<std::byte> beside_out) {
    Reads reads;
    plan_read(file, offset, out.size(), out.data(), reads);
    if (!beside_out.empty()) plan_read(beside, beside_offset, beside_out.size(), beside_out.data(), reads);
    std::array<Read*, 2> some{};
    for (std::size_t i = 0; i < reads.size(); ++i) some[i] = &reads[i];
    channel_->submit(std::span<Read* const>(some.data(), reads.size()));
    for (std::size_t left = reads.size(); left > 0;) {
      std::array<Read*, 2> done{};
      const std::size_t ended = channel_->wait(done, std::chrono::seconds(1));
      left -= ended;
    }
    for (const Read& read : reads) {
      if (read.outcome == Outcome::Failed) std::rethrow_exception(read.error);
    }
  }

 private:
  std::unique_ptr<Channel> channel_;
};

void check_blocks(const File& file, std::uint64_t begin, std::span<const std::byte> blocks,
                  const std::vector<std::uint32_t>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto block = blocks.subspan(i * kCrcBlockBytes, std::min(kCrcBlockBytes, blocks.size() - i * kCrcBlockBytes));
    if (crc32c(block) == values[i]) continue;
    raise(ErrorKind::Corruption,
          "{}: bytes {} to {} are not those that were written: a flipped bit, or another file; `penstock verify` looks "
          "at all of them",
          file.path(), with_commas(begin + i * kCrcBlockBytes), with_commas(begin + i * kCrcBlockBytes + block.size()));
  }
}

// Values [first, first + count) of one shard.
void read_part(const Dataset& dataset, std::uint64_t number, std::size_t column, std::uint64_t first,
               std::uint64_t count, std::byte* out, const StoreChoice& through) {
  const Shard& shard = dataset.shards[number];
  const ColumnPlace& place = dataset.column_table->place(number, column);
  if (const std::byte* const kept = dataset.column_table->kept(number, column)) {
    return dataset.column_table->give(number, column, kept + first * place.value_bytes, count, out);
  }
  const File values = shard.columns.beside(kColumnsCrcName, crc_bytes(shard.columns.bytes));
  const std::uint64_t given_bytes = dataset.columns[column].bytes();
  const std::uint64_t step = std::max<std::uint64_t>(1, kChunkBytes / place.value_bytes);
  Pair pair(*shard.columns.store(), through);
  std::vector<std::byte> blocks;
  std::vector<std::uint32_t> checks;
  for (const std::uint64_t end = first + count; first < end; first += std::min(step, end - first)) {
    const std::uint64_t part = std::min(step, end - first);
    const std::uint64_t offset = place.offset + first * place.value_bytes;
    const std::uint64_t begin = offset / kCrcBlockBytes * kCrcBlockBytes;
    const std::uint64_t stop = align_up(offset + part * place.value_bytes, kCrcBlockBytes);
    blocks.resize(std::min(stop, shard.columns.bytes) - begin);
    checks.resize(shard.checks == Checks::None ? 0 : (blocks.size() + kCrcBlockBytes - 1) / kCrcBlockBytes);
    pair.read(shard.columns, begin, blocks, values, begin / kCrcBlockBytes * sizeof(std::uint32_t),
              std::as_writable_bytes(std::span(checks)));
    check_blocks(shard.columns, begin, blocks, checks);
    dataset.column_table->give(number, column, blocks.data() + (offset - begin), part, out);
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
