#include "layout/pieces.h"

#include "layout/reads.h"

namespace penstock::layout {

void plan_records(const Dataset& dataset, const Piece& piece, std::byte* records, Reads& out) {
  const Shard& shard = dataset.shards[piece.shard];
  const std::uint64_t bytes = dataset.stored_record_bytes;
  const std::uint64_t first = piece.first - (piece.has_lead ? 1 : 0);
  const std::uint64_t stop = piece.stop + (piece.has_tail ? 1 : 0);
  // Unsigned wrap-around on purpose: `first` may be one record before the row.
  std::byte* destination = records + static_cast<std::ptrdiff_t>(piece.at(first) * bytes);
  plan_read(shard.stream, shard.stream_offset + first * bytes, (stop - first) * bytes, destination, out);
}

}  // namespace penstock::layout
