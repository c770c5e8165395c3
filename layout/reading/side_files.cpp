#include "layout/reading/side_files.h"

#include "layout/dataset/format.h"

#include <algorithm>
#include <span>

namespace penstock::layout {
namespace {

void fill(SideFile& side, const File& file, const char* name, bool keeps) {
  if (file.store() == nullptr) return;
  side.values = file.beside(name, crc_bytes(file.bytes));
  if (keeps) side.kept = std::make_unique<KeptBlocks>(side.values);
}

}  // namespace

SideFiles::SideFiles(const Dataset& dataset)
    : dataset_(dataset),
      count_((dataset.shards.size() + kChunk - 1) / kChunk),
      chunks_(new std::atomic<Chunk*>[count_] {}) {}

SideFiles::~SideFiles() {
  for (std::uint64_t i = 0; i < count_; ++i) {
    const std::unique_ptr<Chunk> chunk(chunks_[i].load());
    if (!chunk) continue;
    for (const auto& store : dataset_.stores)
      store->forget(std::as_bytes(std::span(chunk->shards.get(), chunk->count)));
  }
}

SideFiles::Chunk* SideFiles::make(std::uint64_t number) const {
  const std::uint64_t first = number * kChunk;
  const std::uint64_t last = std::min<std::uint64_t>(first + kChunk, dataset_.shards.size());
  auto made = std::make_unique<Chunk>(last - first);
  for (std::uint64_t i = first; i < last; ++i) {
    const Shard& shard = dataset_.shards[i];
    ShardSides& sides = made->shards[i - first];
    fill(sides.stream, shard.stream, kStreamCrcName, false);
    fill(sides.data, shard.data, kDataCrcName, false);
    fill(sides.index, shard.index, kIndexCrcName, true);
    fill(sides.directory, shard.directory, kDirectoryCrcName, true);
    fill(sides.columns, shard.columns, kColumnsCrcName, false);
  }
  Chunk* other = nullptr;
  return chunks_[number].compare_exchange_strong(other, made.get(), std::memory_order_acq_rel) ? made.release() : other;
}

}  // namespace penstock::layout
