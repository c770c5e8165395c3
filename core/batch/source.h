// Source: the seam between observations and bytes. A view (windows, documents) of a dataset is a source.
//
// The engine drives a row through stages: stage 0 plans the first reads, stage k is called when all of stage k-1's
// reads have ended and may use what they read (records, then index, then entries). All that belongs to one row lives
// in the Row, so any thread may ask; beside it a source changes only in what it has kept of its files (keep_at_most).
//
// Fixed rows (windows): `row.records` points to the row's place in the batch from the start.
// Ragged rows (documents): the stages before the records find the length. The plan() that knows it sets `row.length`
// and `row.measured`, appends nothing and returns true; the engine then waits for all rows of the batch, gives every
// row its place, and only then calls the next stage, which reads the records there. (Opaque documents have length 0.)
#pragma once

#include "core/batch/arena.h"
#include "core/batch/schema.h"
#include "core/io/read.h"

#include <boost/container/small_vector.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace penstock {

/// Reads planned by one call; most rows need one or two.
using Reads = boost::container::small_vector<Read, 4>;

/// A metadata entry met in a row. start and stop are records of the row (clipped to it).
struct Span {
  std::uint64_t start = 0;
  std::uint64_t stop = 0;
  bool begins = false;       // the document begins in this row
  bool ends = false;         // the document ends in this row
  std::int64_t offset = -1;  // of the record at `start` within its document; -1: unknown (ids layout)
  std::uint32_t shard = 0;
  std::uint64_t entry = 0;         // number of the entry in its shard
  const std::byte* raw = nullptr;  // the entry's bytes, in the row's arena or kept by the source
  std::uint64_t raw_bytes = 0;
};

/// One observation on its way into a batch. The engine makes and recycles rows; the source fills `length` (ragged rows
/// only) and keeps its own state in the arena.
struct Row {
  std::uint64_t index = 0;       // the observation
  std::byte* records = nullptr;  // where record 0 of the row goes (after `lead`, see RowShape)
  std::uint64_t length = 0;      // records in the row, without lead and tail
  bool measured = false;         // ragged rows: `length` is known, `records` may be set (the engine clears it)
  void* state = nullptr;         // the source's, in the arena
  unsigned stage = 0;            // the engine's: stages planned so far
  void* flight = nullptr;        // the engine's, while reads are under way
  Arena arena;
  std::vector<Span> spans;  // filled by Source::spans
};

/// What a row of this source looks like in memory.
struct RowShape {
  bool ragged = false;       // each row has its own length
  std::uint64_t length = 0;  // records in a fixed row (window + lookahead)
  std::uint64_t lead = 0;    // records that the source may write before row.records …
  std::uint64_t tail = 0;    // … and after the last one (the ids layout sees there whether a span goes on)
};

class Source {
 public:
  virtual ~Source() = default;

  /// Observations.
  [[nodiscard]] virtual std::uint64_t size() const = 0;
  /// The dataset's fingerprint (hex text).
  [[nodiscard]] virtual std::string fingerprint() const = 0;
  /// Canonical JSON of what this view is: {"kind":"windows","window":…,"lookahead":…} or {"kind":"documents"}.
  [[nodiscard]] virtual std::string identity() const = 0;
  /// Counts for messages about another dataset: shards and records (or entries where there are no records).
  [[nodiscard]] virtual std::uint64_t shard_count() const = 0;
  [[nodiscard]] virtual std::uint64_t record_count() const = 0;
  /// The visible fields; offsets are those of the stored record.
  [[nodiscard]] virtual const Schema& schema() const = 0;
  /// Bytes from one stored record to the next (more than schema().record_bytes() in the ids layout); 0: no records.
  [[nodiscard]] virtual std::uint64_t stored_record_bytes() const = 0;
  [[nodiscard]] virtual RowShape shape() const = 0;

  /// Appends the reads of `stage` for row.index to `out`. Returns false if no stage follows this one's reads. May
  /// return true with nothing appended: the next stage is then called at once. Throws Corruption on bytes that cannot
  /// be.
  virtual bool plan(Row& row, unsigned stage, Reads& out) const = 0;

  /// Appends the row's spans, in order of start, to row.spans. Called once, after the last stage's reads.
  virtual void spans(Row& row) const = 0;

  /// From now on it may keep what many rows read of small files, up to `bytes` in all and for as long as it lives.
  /// Returns how many bytes that can become; whoever asks first decides. Until then it keeps nothing.
  virtual std::uint64_t keep_at_most(std::uint64_t /*bytes*/) const { return 0; }
};

}  // namespace penstock
