// KeptMetadata: what a view keeps of the files beside its shards' streams, in one bound for all of them.
//
// A window finds its spans with bytes of three files. The directories of all shards are kept if they fit into what is
// granted, then the indexes, then the entries. Those come first that save the most waits for their size: every window
// needs the directory before all else. A document needs the index alone. What is kept grows while rows are read, on any
// thread.
#pragma once

#include "core/rows/allowance.h"
#include "layout/dataset.h"
#include "layout/reading/kept_blocks.h"

#include <atomic>
#include <cstddef>
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

  enum class Files { All, Index };
  /// Of these files. `shards` outlive it.
  explicit KeptMetadata(const std::vector<Shard>& shards, Files files = Files::All);
  ~KeptMetadata();
  KeptMetadata(const KeptMetadata&) = delete;
  KeptMetadata& operator=(const KeptMetadata&) = delete;

  /// Its steps: the directories, the indexes as well, the entries as well; or the indexes. It keeps nothing before the
  /// grant.
  [[nodiscard]] const std::shared_ptr<Allowance>& allowance() const noexcept { return allowance_; }

  [[nodiscard]] const OfShard& shard(std::uint64_t i) const {
    const OfShard* made = made_[i].load(std::memory_order_acquire);
    return made != nullptr ? *made : make(i);
  }

 private:
  const OfShard& make(std::uint64_t i) const;

  const std::vector<Shard>& shards_;
  const Files files_;
  std::shared_ptr<Allowance> allowance_;
  const std::unique_ptr<std::atomic<const OfShard*>[]> made_;  // each is set once, by the first row that needs it
};

}  // namespace penstock::layout
