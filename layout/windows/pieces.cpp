#include "layout/windows/pieces.h"

#include "layout/documents/document_table.h"
#include "layout/reading/reads.h"

#include <algorithm>

namespace penstock::layout {
namespace {

// Each document's records lie at a place of their own.
void plan_pieces(const Shard& shard, std::uint64_t first, std::uint64_t count, std::uint64_t record_bytes,
                 std::byte* to, Reads& out) {
  if (count == 0) return;
  const std::uint64_t stop = first + count;
  for (std::uint64_t number = shard.table->find(first); first < stop; ++number) {
    const DocumentTable::Document document = shard.table->at(number);
    const std::uint64_t end = std::min(document.token + document.tokens, stop);
    if (end <= first) continue;  // empty
    const std::uint64_t bytes = (end - first) * record_bytes;
    plan_read(shard.stream, document.byte + (first - document.token) * record_bytes, bytes, to, out);
    to += bytes;
    first = end;
  }
}

// One field after the other in the row, each from a file of its own.
void plan_fields(const Dataset& dataset, const Shard& shard, std::uint64_t first, std::uint64_t count,
                 const RowPlace& to, Reads& out) {
  const File* file = &shard.stream;
  for (const Leaf& leaf : dataset.schema.leaves()) {
    const std::uint64_t bytes = leaf.item_bytes;
    std::byte* const field = to.records + leaf.offset_bytes * to.length;
    plan_read(*file, first * bytes, count * bytes, field + to.at * bytes, out);
    file = &shard.columns;
  }
}

// Apart from the usual case, which stays short.
[[gnu::noinline]] void plan_apart(const Dataset& dataset, const Shard& shard, std::uint64_t first, std::uint64_t count,
                                  const RowPlace& to, Reads& out) {
  const std::uint64_t bytes = dataset.stored_record_bytes;
  if (dataset.fields_apart) return plan_fields(dataset, shard, first, count, to, out);
  plan_pieces(shard, first, count, bytes, to.records + static_cast<std::ptrdiff_t>(to.at * bytes), out);
}

bool lies_apart(const Dataset& dataset, const Shard& shard) {
  return dataset.fields_apart || (shard.table != nullptr && shard.table->knows_bytes());
}

// `at` may be one record before the row: unsigned wrap-around on purpose.
void plan_together(const Dataset& dataset, const Shard& shard, std::uint64_t first, std::uint64_t count,
                   std::byte* records, std::uint64_t at, Reads& out) {
  const std::uint64_t bytes = dataset.stored_record_bytes;
  std::byte* const destination = records + static_cast<std::ptrdiff_t>(at * bytes);
  plan_read(shard.stream, shard.stream_offset + first * bytes, count * bytes, destination, out);
}

}  // namespace

void plan_stream(const Dataset& dataset, const Shard& shard, std::uint64_t first, std::uint64_t count,
                 const RowPlace& to, Reads& out) {
  if (lies_apart(dataset, shard)) return plan_apart(dataset, shard, first, count, to, out);
  plan_together(dataset, shard, first, count, to.records, to.at, out);
}

void plan_records(const Dataset& dataset, const Piece& piece, std::byte* records, std::uint64_t length, Reads& out) {
  const Shard& shard = dataset.shards[piece.shard];
  const std::uint64_t first = piece.first - (piece.has_lead ? 1 : 0);
  const std::uint64_t stop = piece.stop + (piece.has_tail ? 1 : 0);
  const std::uint64_t at = piece.at(first);
  if (lies_apart(dataset, shard)) return plan_apart(dataset, shard, first, stop - first, {records, at, length}, out);
  plan_together(dataset, shard, first, stop - first, records, at, out);
}

}  // namespace penstock::layout
