#include "core/io/cache/block_share.h"

#include "core/base/digest.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace penstock {
namespace {

// Of a disk: whole pages, and a page of check values, which blocks far apart do not share.
std::uint64_t cost(std::uint64_t bytes) {
  return (bytes + kCachePage - 1) / kCachePage * kCachePage + kCachePage;
}

}  // namespace

std::uint64_t BlockShare::phase_of(std::string_view name) {
  const DigestBytes digest = digest_of(std::as_bytes(std::span(name)));
  std::uint64_t phase = 0;
  std::memcpy(&phase, digest.data(), sizeof phase);
  return phase;
}

BlockShare BlockShare::within(std::span<const File> files, std::uint64_t most_bytes) {
  std::vector<std::uint64_t> costs(kParts);
  for (const File& file : files) {
    for (std::uint64_t begin = 0, block = 0; begin < file.bytes; begin += kCacheBlock, ++block) {
      costs[part(file.phase, block)] += cost(std::min(kCacheBlock, file.bytes - begin));
    }
  }
  std::uint64_t parts = 0;
  for (std::uint64_t taken = 0; parts < kParts; ++parts) {
    taken += costs[parts];
    if (taken > most_bytes) break;
  }
  return BlockShare(parts);
}

}  // namespace penstock
