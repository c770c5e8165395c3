// Pages that lie in pieces of memory: what a read brings goes where each row wants it, and pages cross these places.
//
// Pure; one thread.
#pragma once

#include "core/io/read.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace penstock {

/// Bytes [begin, end) of a file, in memory.
struct CachePiece {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::byte* at = nullptr;
  Read* read = nullptr;  // that they are for, or that lies beside them
};

/// Appends the CRC32C of each 4 KiB of [begin, end), the last of which may be fewer. `begin` is a multiple of that, and
/// `pieces` cover the range in order and without gaps.
void append_page_sums(std::span<const CachePiece> pieces, std::uint64_t begin, std::uint64_t end,
                      std::vector<std::uint32_t>& out);

}  // namespace penstock
