#include "core/io/cache/page_sums.h"

#include "core/base/crc32c.h"
#include "core/io/cache/block_share.h"

#include <algorithm>

namespace penstock {

void append_page_sums(std::span<const CachePiece> pieces, std::uint64_t begin, std::uint64_t end,
                      std::vector<std::uint32_t>& out) {
  auto piece = pieces.begin();
  while (begin < end) {
    while (piece->end <= begin) ++piece;
    const std::uint64_t here = std::min(piece->end, end) - begin;
    const std::uint64_t whole = begin + here == end ? here : here / kCachePage * kCachePage;
    if (whole > 0) {
      crc32c_blocks({piece->at + (begin - piece->begin), whole}, kCachePage, out);
      begin += whole;
      continue;
    }
    std::uint32_t sum = 0;
    const std::uint64_t stop = std::min(begin + kCachePage, end);
    while (begin < stop) {
      while (piece->end <= begin) ++piece;
      const std::uint64_t bytes = std::min(piece->end, stop) - begin;
      sum = crc32c({piece->at + (begin - piece->begin), bytes}, sum);
      begin += bytes;
    }
    out.push_back(sum);
  }
}

}  // namespace penstock
