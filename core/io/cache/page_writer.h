// PageWriter: puts pages into a cache: their bytes, then their check values. Of one thread.
//
// Where a disk is full or the folder may not be written any more, nothing is written from then on; no error is raised
// but by the counts.
#pragma once

#include "core/io/cache/cached_file.h"
#include "core/io/cache/page_sums.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace penstock {

/// Has the pages of a range of bytes be as if they were not kept. False if it could not.
bool drop_pages(const CachedFile& file, std::uint64_t offset, std::uint64_t size);

class PageWriter {
 public:
  explicit PageWriter(CacheCounts& counts) : counts_(counts) {}
  ~PageWriter();
  PageWriter(const PageWriter&) = delete;
  PageWriter& operator=(const PageWriter&) = delete;

  [[nodiscard]] bool is_stopped() const noexcept { return counts_.stopped_by.load(std::memory_order_relaxed) != 0; }
  /// Writes [begin, end), whole pages but for the file's last, from `pieces`, which cover it. False if it could not.
  bool write(CachedFile& file, std::uint64_t begin, std::uint64_t end, std::span<const CachePiece> pieces);

 private:
  struct Open {
    const CachedFile* file = nullptr;
    int data = -1;
    int sums = -1;
  };

  Open* open(CachedFile& file);
  static void close(Open& open) noexcept;

  CacheCounts& counts_;
  std::array<Open, 4> open_{};  // the files that one window reads
  std::size_t next_ = 0;
  std::vector<std::uint32_t> sums_;
};

}  // namespace penstock
