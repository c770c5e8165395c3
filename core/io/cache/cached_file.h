// CachedFile: a file of another store and its two local files; CacheCounts: what came of them.
#pragma once

#include "core/io/file.h"

#include <atomic>
#include <cstdint>
#include <string>

namespace penstock {

/// Of one store, over all its channels; pages are 4 KiB. Any thread.
struct CacheCounts {
  std::atomic<std::uint64_t> hits{0};    // pages that were right
  std::atomic<std::uint64_t> misses{0};  // pages that were read from the store around which the cache is
  std::atomic<std::uint64_t> wrong{0};   // … since what was kept of them did not have its check value
  std::atomic<std::uint64_t> filled{0};  // pages that were written
  std::atomic<std::uint64_t> failed{0};  // writes that could not be
  std::atomic<int> stopped_by{0};        // errno of the write after which no more are tried; 0: they are
};

/// Stays at one address: channels of local files know `data` and `sums` by it.
struct CachedFile {
  CachedFile(const std::string& name, std::uint64_t bytes_, std::uint64_t phase_, std::uint64_t sum_bytes,
             ByteStore* local)
      : bytes(bytes_), phase(phase_), data(name + ".data", bytes_, local), sums(name + ".crc", sum_bytes, local) {}

  const std::uint64_t bytes;
  const std::uint64_t phase;  // see BlockShare
  const File data;
  const File sums;
  std::atomic<bool> is_there{false};  // they were seen
};

}  // namespace penstock
