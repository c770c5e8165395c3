// KeptMetadata: what a view keeps of the compact layout's files: of all shards the directories, if they fit into its
// bound, then the indexes, then the entries. Those come first that save the most waits for their size: every window
// needs the directory before all else. What is kept grows while rows are read, on any thread.
#pragma once

#include "layout/dataset.h"
#include "layout/kept_blocks.h"

#include <atomic>
#include <cstdint>
#include <vector>

namespace penstock::layout {

/// What is kept of one file, made when it is first asked for: a view of tens of thousands of shards costs no more to
/// make than one of a few. Any thread.
class KeptFile {
 public:
  KeptFile() = default;
  ~KeptFile() { delete blocks_.load(std::memory_order_acquire); }
  KeptFile(const KeptFile&) = delete;
  KeptFile& operator=(const KeptFile&) = delete;

  /// From now on `file`, which must outlive this, is kept.
  void keep(const File& file) noexcept { file_ = &file; }
  /// Null: the file is read each time.
  [[nodiscard]] KeptBlocks* get() const;

 private:
  const File* file_ = nullptr;
  mutable std::atomic<KeptBlocks*> blocks_ = nullptr;
};

class KeptMetadata {
 public:
  struct OfShard {
    KeptFile directory;
    KeptFile index;
    KeptFile data;
  };

  /// Keeps nothing yet, and never more than `most` bytes.
  KeptMetadata(const std::vector<Shard>& shards, std::uint64_t most);

  [[nodiscard]] const OfShard& shard(std::uint64_t i) const { return shards_[i]; }
  /// That it may come to keep.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  bool keep(const std::vector<Shard>& shards, File Shard::*file, KeptFile OfShard::*kept, std::uint64_t most);

  std::vector<OfShard> shards_;
  std::uint64_t bytes_ = 0;
};

}  // namespace penstock::layout
