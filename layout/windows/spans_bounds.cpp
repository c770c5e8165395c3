// Documents of a foreign file as spans, which follow one another and have no entries: told by an array of the file
// (DocumentBounds), of which a window reads one bounded range, or by a table in memory.
#include "layout/documents/document_bounds.h"
#include "layout/documents/document_table.h"
#include "layout/reading/reads.h"
#include "layout/windows/span_finder.h"

#include <algorithm>

namespace penstock::layout {
namespace {

struct BoundsPiece {
  Piece piece;
  DocumentBounds::Range range{};
  const std::byte* values = nullptr;
};

class BoundsFinder final : public SpanFinder {
 public:
  using SpanFinder::SpanFinder;
  bool plan(Row& row, CutRow& cut, unsigned round, Parts wanted, Reads& out) const override;
  void spans(const CutRow& cut, SpanTable& out) const override;

 private:
  void append_read(const BoundsPiece& part, SpanTable& out) const;
  void append_known(const Piece& piece, SpanTable& out) const;
};

// Round 0 reads where the documents around each piece begin. Those without an array are in memory.
bool BoundsFinder::plan(Row& row, CutRow& cut, unsigned round, Parts /*wanted*/, Reads& out) const {
  if (round > 0) return false;
  auto* parts = row.arena.make_array<BoundsPiece>(cut.pieces.size());
  cut.found = parts;
  for (const Piece& piece : cut.pieces) {
    BoundsPiece& part = *parts++;
    part.piece = piece;
    const Shard& shard = this->shard(piece);
    if (!shard.bounds) continue;
    part.range = shard.bounds->around(piece.first, piece.stop);
    const DocumentBounds::Place place = shard.bounds->place(part.range.first, part.range.stop);
    part.values = plan_read(row, shard.index, place.offset, place.bytes, out);
  }
  return false;
}

void append(const Piece& piece, std::uint64_t number, std::uint64_t from, std::uint64_t to, SpanTable& out) {
  if (from == to || to <= piece.first || from >= piece.stop) return;
  const std::uint64_t start = std::max(from, piece.first);
  out.push_back({piece.at(start), piece.at(std::min(to, piece.stop)), from >= piece.first, to <= piece.stop,
                 static_cast<std::int64_t>(start - from), static_cast<std::uint32_t>(piece.shard), number, nullptr, 0});
}

void BoundsFinder::append_read(const BoundsPiece& part, SpanTable& out) const {
  const Shard& shard = this->shard(part.piece);
  std::vector<std::uint64_t> starts(part.range.stop - part.range.first + 1);
  shard.bounds->starts(shard, part.range.first, part.values, starts);
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
    append(part.piece, part.range.first + i, starts[i], starts[i + 1], out);
  }
}

void BoundsFinder::append_known(const Piece& piece, SpanTable& out) const {
  const DocumentTable& table = *shard(piece).table;
  for (std::uint64_t number = table.find(piece.first); number < table.documents(); ++number) {
    const DocumentTable::Document document = table.at(number);
    if (document.token >= piece.stop) break;
    append(piece, number, document.token, document.token + document.tokens, out);
  }
}

void BoundsFinder::spans(const CutRow& cut, SpanTable& out) const {
  for (const BoundsPiece& part : std::span(static_cast<const BoundsPiece*>(cut.found), cut.pieces.size())) {
    if (shard(part.piece).bounds) {
      append_read(part, out);
    } else {
      append_known(part.piece, out);
    }
  }
}

}  // namespace

std::unique_ptr<const SpanFinder> make_bounds_finder(DatasetPtr dataset) {
  return std::make_unique<BoundsFinder>(std::move(dataset));
}

}  // namespace penstock::layout
