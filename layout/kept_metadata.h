// KeptMetadata: what a view keeps of the compact layout's files: of all shards the directories, if they fit into its
// bound, then the indexes, then the entries. Those come first that save the most waits for their size: every window
// needs the directory before all else. What is kept grows while rows are read, on any thread.
#pragma once

#include "layout/dataset.h"
#include "layout/kept_blocks.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace penstock::layout {

class KeptMetadata {
 public:
  struct OfShard {  // null: that file is read each time
    std::unique_ptr<KeptBlocks> directory;
    std::unique_ptr<KeptBlocks> index;
    std::unique_ptr<KeptBlocks> data;
  };

  /// Keeps nothing yet, and never more than `most` bytes.
  KeptMetadata(const std::vector<Shard>& shards, std::uint64_t most);

  [[nodiscard]] const OfShard& shard(std::uint64_t i) const { return shards_[i]; }
  /// That it may come to keep.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  bool keep(const std::vector<Shard>& shards, File Shard::*file, std::unique_ptr<KeptBlocks> OfShard::*kept,
            std::uint64_t most);

  std::vector<OfShard> shards_;
  std::uint64_t bytes_ = 0;
};

}  // namespace penstock::layout
