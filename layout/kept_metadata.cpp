#include "layout/kept_metadata.h"

namespace penstock::layout {

KeptMetadata::KeptMetadata(const std::vector<Shard>& shards, std::uint64_t most) : shards_(shards.size()) {
  static_cast<void>(keep(shards, &Shard::directory, &OfShard::directory, most) &&
                    keep(shards, &Shard::index, &OfShard::index, most) &&
                    keep(shards, &Shard::data, &OfShard::data, most));
}

// Keeps one file of each shard if there is room for all of them.
bool KeptMetadata::keep(const std::vector<Shard>& shards, File Shard::*file, std::unique_ptr<KeptBlocks> OfShard::*kept,
                        std::uint64_t most) {
  std::uint64_t bytes = bytes_;
  for (const Shard& shard : shards) {
    const std::uint64_t needed = KeptBlocks::most_bytes(shard.*file);
    if (needed > most - bytes) return false;
    bytes += needed;
  }
  bytes_ = bytes;
  for (std::size_t i = 0; i < shards.size(); ++i) shards_[i].*kept = std::make_unique<KeptBlocks>(shards[i].*file);
  return true;
}

}  // namespace penstock::layout
