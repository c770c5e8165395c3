// Source: the seam between observations and bytes. A view (windows, documents) of a dataset is a source.
//
// The engine drives a row through rounds: round 0 plans the first reads, round k is called when all of round k-1's
// reads have ended and may use what they read (records, then index, then entries). All that belongs to one row lives
// in the Row, so any thread may ask; beside it a source changes only in what it has kept of its files (Allowance).
//
// Fixed rows (windows): `row.records` points to the row's place in the batch from the start.
// Ragged rows (documents): the rounds before the records find the length. The plan() that knows it sets `row.length`
// and `row.measured`, appends nothing and returns true; the engine then waits for all rows of the batch, gives every
// row its place, and only then calls the next round, which reads the records there. (Opaque documents have length 0.)
//
// What files say is no reason to take memory: a source checks lengths and sizes against its files, and the row's bound
// (Row::most_bytes) refuses what is too large for max_bytes.
#pragma once

#include "core/io/read.h"
#include "core/job/source_identity.h"
#include "core/rows/allowance.h"
#include "core/rows/arena.h"
#include "core/rows/schema.h"
#include "core/rows/value_type.h"

#include <boost/container/small_vector.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
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
  const std::byte* raw = nullptr;  // the entry's bytes, in the row's arena or kept by the source; null: not read
  std::uint64_t raw_bytes = 0;     // 0 if not read
};

/// The spans of rows, in order of start.
using SpanTable = std::vector<Span>;

/// Typed values of the row's documents: value c of document d lies at `at[d * values + c]`, in the row's arena or kept
/// by the source. Documents are in the order of the row's spans.
struct RowValues {
  const std::byte* const* at = nullptr;
  std::uint64_t documents = 0;
};
class Source;
class RowSlice;  // core/rows/row_slice.h

/// One observation on its way into a batch. The engine makes and recycles rows; the source fills `length` (ragged rows
/// only) and keeps its own state in the arena.
struct Row {
  std::uint64_t index = 0;          // the observation
  std::byte* records = nullptr;     // where record 0 of the row goes (after `lead`, see RowShape); moves before spans()
  std::uint64_t length = 0;         // records in the row, without lead and tail
  std::uint64_t number = 0;         // the batch's: which of its rows this is …
  std::uint64_t begin = 0;          // … and which record of the flattened batch its first one is (see BatchShape) …
  std::uint32_t epoch = 0;          // … the epoch in which it is met …
  const Source* source = nullptr;   // … and whose observation it is
  const void* group = nullptr;      // the rows that are read together with it, in step; null: it is read by itself
  const RowSlice* slice = nullptr;  // the part of its records that is wanted, the others may be anything; null: all
  bool measured = false;            // ragged rows: `length` is known, `records` may be set (the engine clears it)
  void* state = nullptr;            // the source's, in the arena
  RowValues* values = nullptr;      // if they were wanted, after the last round; in the arena
  void* checks = nullptr;           // those of what it reads, in the arena (layout/reading/checks.h)
  unsigned round = 0;               // the engine's: rounds planned so far
  std::exception_ptr error;         // the engine's: of a row that is read in a group
  Arena arena;
  SpanTable spans;  // filled by Source::spans

  /// Another observation, before its first round; only the place in memory stays.
  void restart(std::uint64_t index_, std::uint64_t length_) noexcept {
    index = index_;
    length = length_;
    measured = false;
    state = nullptr;
    values = nullptr;
    checks = nullptr;
    group = nullptr;
    round = 0;
    error = nullptr;
    arena.reset();
    spans.clear();
  }

  /// Bytes that this row may take: of its records, if it is ragged, and of what it reads beside them.
  [[nodiscard]] std::uint64_t most_bytes() const noexcept { return arena.most_bytes(); }
};

/// What a row of this source looks like in memory.
struct RowShape {
  bool ragged = false;       // each row has its own length
  std::uint64_t length = 0;  // records in a fixed row (window + lookahead)
  std::uint64_t lead = 0;    // records that the source may write before row.records …
  std::uint64_t tail = 0;    // … and after the last one (the ids layout sees there whether a span goes on)
};

/// What is wanted of a row; a set. Entries come with their spans, values of windows too.
///
/// What is not wanted is not read, unless it is the way to what is: documents always read what tells where they lie,
/// and the ids layout finds spans by its records. Without Records nothing is written to `row.records`, which may be
/// null.
enum class Parts : unsigned { None = 0, Records = 1, Spans = 2, Entries = 4, Values = 8, All = 15 };

constexpr Parts operator|(Parts a, Parts b) noexcept {
  return static_cast<Parts>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
constexpr bool has(Parts parts, Parts wanted) noexcept {
  return (static_cast<unsigned>(parts) & static_cast<unsigned>(wanted)) == static_cast<unsigned>(wanted);
}
constexpr bool has_spans(Parts parts) noexcept {
  return has(parts, Parts::Spans) || has(parts, Parts::Entries);
}

/// What a source is: constants, set when it is made.
struct SourceInfo {
  std::string path;         // where the dataset is, for messages
  std::uint64_t size = 0;   // observations
  SourceIdentity identity;  // of the dataset, and of the view: {"kind":"windows","window":…,"lookahead":…}
  Schema schema;            // the visible fields; offsets are those of the stored record
  std::uint64_t stored_record_bytes = 0;  // from one record to the next (ids layout: more than the schema's); 0: none
  RowShape shape;
  std::uint64_t mean_length = 0;       // records of a row …
  std::uint64_t mean_entry_bytes = 0;  // … and its entries' bytes, by which the memory of rows is estimated
  std::shared_ptr<Allowance> keeps;    // for what many rows read of small files to find spans; null: it keeps nothing
  ValueTypes values;                   // what Row::values has of each document …
  std::shared_ptr<Allowance> keeps_values;  // … and what may be kept of those
  /// The records of a row are an array for each leaf, in the schema's order, one behind the other, values end to end: a
  /// leaf with `offset_bytes` o begins at row.records + o * row.length (in sub-arrays of records, where the leaves
  /// before it end). Such rows have no lead and tail, and a batch of them has columns but no `records`.
  bool fields_apart = false;
  /// Not 0: rows are packed. A row's spans are pieces of documents, each of which takes a multiple of this many
  /// records; records outside of spans are padding.
  std::uint64_t packed_multiple = 0;
};

class Source {
 public:
  virtual ~Source() = default;

  [[nodiscard]] virtual const SourceInfo& info() const = 0;

  /// Appends the reads of `round` for row.index to `out`; of the row's parts, those that are `wanted`. Returns false if
  /// no round follows this one's reads. May return true with nothing appended: the next round is then called at once.
  /// Throws Corruption on bytes that cannot be.
  virtual bool plan(Row& row, unsigned round, Parts wanted, Reads& out) const = 0;

  /// Which observation of the whole view observation `index` is, where this is a part of a view.
  [[nodiscard]] virtual std::uint64_t base_index(std::uint64_t index) const { return index; }

  /// The first record, in the dataset's stream, of a row that was read, whose observation in this source is `index`; -1
  /// where there is none.
  [[nodiscard]] virtual std::int64_t first_record(const Row& /*row*/, std::uint64_t /*index*/) const { return -1; }

  /// Where an observation's records lie.
  struct Place {
    std::string file;
    std::uint64_t number;  // of the observation among those of the file
  };
  /// For messages.
  [[nodiscard]] virtual Place place_of(std::uint64_t index) const { return {info().path, index}; }

  /// Appends the row's spans, in order of start, to `out`; the entries' bytes only if they were wanted. Called once,
  /// after the last round's reads, and only if spans or entries were wanted. What it needs to know of the row is in
  /// row.state: row.index may be its number in a sub-view.
  virtual void spans(const Row& row, SpanTable& out) const = 0;
};

}  // namespace penstock
