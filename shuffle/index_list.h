// IndexList: indices of observations where they lie, in memory or in a mapping. A value; any thread.
#pragma once

#include "core/base/digest.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace penstock::shuffle {

struct IndexList {
  /// Indices of a part: the digest of a list is over those of its parts, which are made side by side.
  static constexpr std::uint64_t kPart = std::uint64_t{1} << 22;

  const void* data = nullptr;  // of the first one, aligned
  bool is_wide = false;        // u64, else u32
  std::ptrdiff_t step = 1;     // from one to the next, in indices
  std::uint64_t size = 0;
  std::shared_ptr<const void> owner = {};  // of the memory
  std::function<void()> check_same = {};   // throws where it is no more what it was; before each look

  [[nodiscard]] std::uint64_t operator[](std::uint64_t at) const noexcept {
    const std::ptrdiff_t place = static_cast<std::ptrdiff_t>(at) * step;
    return is_wide ? static_cast<const std::uint64_t*>(data)[place] : static_cast<const std::uint32_t*>(data)[place];
  }
};

/// The result of one pass over a part of a list.
struct IndexSummary {
  DigestBytes digest = {};
  std::uint64_t largest = 0;
  std::uint64_t largest_at = 0;  // the first of them
};

/// Summary of the indices [begin, end), at least one: the digest is XXH3-128 of them as 8 little-endian bytes each, so
/// the same for both widths.
IndexSummary summarize(const IndexList& list, std::uint64_t begin, std::uint64_t end);

/// The digest of a list of `size` indices, of those of its parts, in order.
DigestBytes digest_of_parts(std::uint64_t size, std::span<const DigestBytes> parts);

}  // namespace penstock::shuffle
