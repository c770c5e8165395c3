#include "shuffle/index_list.h"

#include <algorithm>
#include <array>

namespace penstock::shuffle {
namespace {

// Indices that are widened, looked at and digested at once: their bytes stay in the core's first cache.
constexpr std::size_t kIndexChunk = 2048;

template <typename T>
void widen(const IndexList& list, std::uint64_t first, std::span<std::uint64_t> out) {
  const T* const from = static_cast<const T*>(list.data) + static_cast<std::ptrdiff_t>(first) * list.step;
  if (list.step == 1) {
    std::copy_n(from, out.size(), out.begin());
    return;
  }
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = from[static_cast<std::ptrdiff_t>(i) * list.step];
}

}  // namespace

IndexSummary summarize(const IndexList& list, std::uint64_t begin, std::uint64_t end) {
  std::array<std::uint64_t, kIndexChunk> wide;
  IndexSummary found;
  found.largest_at = begin;
  Digest digest;
  for (std::uint64_t at = begin; at < end; at += wide.size()) {
    const std::span<std::uint64_t> chunk(wide.data(), std::min<std::uint64_t>(wide.size(), end - at));
    if (list.is_wide) {
      widen<std::uint64_t>(list, at, chunk);
    } else {
      widen<std::uint32_t>(list, at, chunk);
    }
    std::uint64_t largest = 0;  // a loop that compilers make of vectors; where it stands is looked for when it matters
    for (const std::uint64_t each : chunk) largest = std::max(largest, each);
    if (largest > found.largest) {
      found.largest = largest;
      found.largest_at =
          at + static_cast<std::uint64_t>(std::find(chunk.begin(), chunk.end(), largest) - chunk.begin());
    }
    digest.update(std::as_bytes(chunk));
  }
  found.digest = digest.bytes();
  return found;
}

DigestBytes digest_of_parts(std::uint64_t size, std::span<const DigestBytes> parts) {
  Digest digest;
  digest.update_u64(size);
  for (const DigestBytes& part : parts) digest.update(part);
  return digest.bytes();
}

}  // namespace penstock::shuffle
