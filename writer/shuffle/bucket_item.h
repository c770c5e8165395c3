// The bucket's item: what one destination gets of one span, as it lies in a shuffle's scratch file. Constants, structs.
//
// Behind the header lie the parts, end to end. What else belongs to a document travels as a part of its own: it is
// added to ItemPart, given by the reader of the input in this order, and taken by the writer of shards (shuffle.cpp).
#pragma once

#include "core/base/digest.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <type_traits>

namespace penstock::writer {

/// In the order in which a shard's writer takes them.
enum ItemPart : std::size_t { kEntryPart, kValuesPart, kRecordsPart, kItemParts };

using PartBytes = std::array<std::uint64_t, kItemParts>;

inline std::uint64_t sum_of(const PartBytes& bytes) noexcept {
  return std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0});
}

struct ItemHeader {
  /// As large_at: the parts lie behind the header.
  static constexpr std::uint64_t kInline = UINT64_MAX;

  std::uint64_t destination = 0;
  std::uint64_t large_at = kInline;  // else they lie there, and behind the header the digest of them
  PartBytes bytes{};
};
static_assert(std::is_trivially_copyable_v<ItemHeader> && sizeof(ItemHeader) == 16 + 8 * kItemParts);

/// Memory that an item of a loaded bucket takes besides: its place, and at most one count for each destination.
inline constexpr std::uint64_t kTableBytes = 16;

}  // namespace penstock::writer
