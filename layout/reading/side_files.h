// SideFiles: the .crc files of a dataset's shards, as their readers need them.
//
// Made for some shards at a time when the first of them is read: a dataset may have tens of thousands. The check values
// of an index and a directory are kept in memory, a thousandth of these files' size. Any thread.
#pragma once

#include "layout/dataset.h"
#include "layout/reading/kept_blocks.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace penstock::layout {

/// The side file of one file.
struct SideFile {
  File values;                          // u32 for each 4 KiB
  std::unique_ptr<KeptBlocks> kept;     // of an index or a directory
  std::atomic<bool> is_claimed{false};  // a row has claimed the first check; it may have been cancelled since
  std::atomic<bool> is_trusted{false};  // some blocks of the file were compared, and right
};

struct ShardSides {
  SideFile stream;
  SideFile data;
  SideFile index;
  SideFile directory;
  SideFile columns;
  std::atomic<bool> is_known{false};  // shard.json was compared with the manifest
};

class SideFiles {
 public:
  /// `dataset` outlives it.
  explicit SideFiles(const Dataset& dataset);
  /// Has the stores close what is open of them.
  ~SideFiles();
  SideFiles(const SideFiles&) = delete;
  SideFiles& operator=(const SideFiles&) = delete;

  /// Of shard number `i`. Throws std::bad_alloc.
  ShardSides& of(std::uint64_t i) const {
    Chunk* made = chunks_[i / kChunk].load(std::memory_order_acquire);
    return (made != nullptr ? made : make(i / kChunk))->shards[i % kChunk];
  }

 private:
  // Large, since a store looks through its open files once for each when they go.
  static constexpr std::uint64_t kChunk = 1024;
  struct Chunk {
    explicit Chunk(std::uint64_t count_) : count(count_), shards(new ShardSides[count_]) {}
    const std::uint64_t count;
    const std::unique_ptr<ShardSides[]> shards;
  };

  Chunk* make(std::uint64_t number) const;

  const Dataset& dataset_;
  const std::uint64_t count_;
  const std::unique_ptr<std::atomic<Chunk*>[]> chunks_;  // each is set once
};

}  // namespace penstock::layout
