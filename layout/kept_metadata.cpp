#include "layout/kept_metadata.h"

#include <memory>

namespace penstock::layout {

KeptBlocks* KeptFile::get() const {
  if (file_ == nullptr) return nullptr;
  KeptBlocks* blocks = blocks_.load(std::memory_order_acquire);
  if (blocks != nullptr) return blocks;
  auto made = std::make_unique<KeptBlocks>(*file_);
  if (blocks_.compare_exchange_strong(blocks, made.get(), std::memory_order_acq_rel)) return made.release();
  return blocks;
}

KeptMetadata::KeptMetadata(const std::vector<Shard>& shards, std::uint64_t most) : shards_(shards.size()) {
  static_cast<void>(keep(shards, &Shard::directory, &OfShard::directory, most) &&
                    keep(shards, &Shard::index, &OfShard::index, most) &&
                    keep(shards, &Shard::data, &OfShard::data, most));
}

// Keeps one file of each shard if there is room for all of them.
bool KeptMetadata::keep(const std::vector<Shard>& shards, File Shard::*file, KeptFile OfShard::*kept,
                        std::uint64_t most) {
  std::uint64_t bytes = bytes_;
  for (const Shard& shard : shards) {
    const std::uint64_t needed = KeptBlocks::most_bytes(shard.*file);
    if (needed > most - bytes) return false;
    bytes += needed;
  }
  bytes_ = bytes;
  for (std::size_t i = 0; i < shards.size(); ++i) (shards_[i].*kept).keep(shards[i].*file);
  return true;
}

}  // namespace penstock::layout
