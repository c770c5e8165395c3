// Pieces: a row of the stream, cut at the bounds of shards. What cutters (windows) make and span finders look at.
//
// Plain data in a row's arena; one thread at a time for each row.
#pragma once

#include "core/rows/source.h"
#include "layout/dataset.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace penstock::layout {

/// The part of a row that lies in one shard: records [first, stop) of the shard, from record `start` of the row on.
struct Piece {
  std::uint64_t shard = 0;
  std::uint64_t first = 0;
  std::uint64_t stop = 0;
  std::uint64_t start = 0;
  bool has_lead = false;  // the shard's record before the piece is read too, to where it belongs in the row …
  bool has_tail = false;  // … and the record after it (SpanFinder::looks_at_records)

  /// Where record `record` of the shard is in the row.
  [[nodiscard]] std::uint64_t at(std::uint64_t record) const noexcept { return start + (record - first); }
};

/// A row that was cut, as its span finder sees it.
struct CutRow {
  std::span<const Piece> pieces;       // in order, none empty
  const std::byte* records = nullptr;  // where record 0 of the row lies, for a finder that looks at records
  void* found = nullptr;               // the finder's own state, in the row's arena
};

/// Where records of a row go.
struct RowPlace {
  std::byte* records = nullptr;  // record 0 of the row
  std::uint64_t at = 0;          // the record that is the first one to be read; one before the row wraps around
  std::uint64_t length = 0;      // of the row, where fields lie apart
};

/// Plans the reads of records [first, first + count) of a shard's stream, which may lie in pieces or in two files.
/// Throws Corruption if they are not inside their files.
void plan_stream(const Dataset& dataset, const Shard& shard, std::uint64_t first, std::uint64_t count,
                 const RowPlace& to, Reads& out);

/// Plans the read of the piece's records, lead and tail included, into a row of `length` records.
void plan_records(const Dataset& dataset, const Piece& piece, std::byte* records, std::uint64_t length, Reads& out);

}  // namespace penstock::layout
