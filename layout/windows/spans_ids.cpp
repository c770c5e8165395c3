// The ids layout: metadata_id, the last u32 of each stored record -> metadata.index (u64 byte offsets) -> metadata.bin.
//
// A span is a maximal run of one id. One record more on each side of the row, where its shard has one, tells whether
// the runs at the row's ends go on there. Each id of a window is looked up once, near ones by one read (reads.h).
#include "core/base/checked.h"
#include "layout/dataset/format.h"
#include "layout/reading/reads.h"
#include "layout/windows/span_finder.h"

#include <boost/container/small_vector.hpp>

#include <algorithm>

namespace penstock::layout {
namespace {

constexpr std::ptrdiff_t kRunBlock = 64;  // records that are looked at together for the beginning of a run

// Records [start, stop) of the row have the id; begins and ends as in Span.
struct Run {
  std::uint64_t start = 0;
  std::uint64_t stop = 0;
  std::uint32_t id = 0;
  bool begins = false;
  bool ends = false;
};

struct IdsPiece {
  Piece piece;
  std::span<Run> runs;           // round 1
  std::span<std::uint32_t> ids;  // distinct, rising
  std::span<Wanted> offsets;     // of each id: its offset and the next
  std::span<Wanted> entries;     // round 2: of each id; empty if entries are not wanted
};

class IdsFinder final : public SpanFinder {
 public:
  explicit IdsFinder(DatasetPtr dataset);

  [[nodiscard]] bool looks_at_records() const noexcept override { return true; }
  bool plan(Row& row, CutRow& cut, unsigned round, Parts wanted, Reads& out) const override;
  void spans(const CutRow& cut, SpanTable& out) const override;

 private:
  void find_runs(Row& row, const std::byte* row_records, IdsPiece& part) const;
  void find_ids(Row& row, IdsPiece& part) const;
  void plan_offsets(Row& row, IdsPiece& part, Reads& out) const;
  void plan_entries(Row& row, IdsPiece& part, Reads& out) const;
};

IdsFinder::IdsFinder(DatasetPtr dataset) : SpanFinder(std::move(dataset)) {
  if (this->dataset().stored_record_bytes < kIdBytes) {
    raise(ErrorKind::Corruption, "{}: records of {} bytes have no room for their id", this->dataset().path,
          this->dataset().stored_record_bytes);
  }
  for (const Shard& shard : this->dataset().shards) {
    const std::uint64_t wanted =
        checked_mul(checked_add(shard.entries, 1, "entries"), kOffsetIndexEntryBytes, "metadata.index");
    if (shard.index.bytes == wanted) continue;
    raise(ErrorKind::Corruption, "{}: {} bytes, {} entries want {}", shard.index.path(), with_commas(shard.index.bytes),
          with_commas(shard.entries), with_commas(wanted));
  }
}

bool IdsFinder::plan(Row& row, CutRow& cut, unsigned round, Parts wanted, Reads& out) const {
  if (round == 0) return true;  // the records are read
  if (round == 1) {
    auto* parts = row.arena.make_array<IdsPiece>(cut.pieces.size());
    cut.found = parts;
    for (const Piece& piece : cut.pieces) parts++->piece = piece;
  }
  const bool entries = has(wanted, Parts::Entries);
  for (IdsPiece& part : std::span(static_cast<IdsPiece*>(cut.found), cut.pieces.size())) {
    if (round == 1) {
      find_runs(row, cut.records, part);
      find_ids(row, part);
      if (entries) plan_offsets(row, part, out);
    } else {
      plan_entries(row, part, out);
    }
  }
  return entries && round < 2;
}

// The id of the record `distance` records after `record`; rows hold stored records end to end.
std::uint32_t id_at(const std::byte* record, std::ptrdiff_t distance, std::uint64_t record_bytes) {
  const std::byte* end = record + (distance + 1) * static_cast<std::ptrdiff_t>(record_bytes);
  return load<std::uint32_t>(end - kIdBytes);
}

// Whether a run begins among records [from, stop): by one pass that compares without a branch. kBytes is 0 where no
// special case is worth its code.
template <std::uint64_t kBytes>
bool any_begins(const std::byte* records, std::ptrdiff_t from, std::ptrdiff_t stop, std::uint64_t record_bytes) {
  const std::uint64_t bytes = kBytes > 0 ? kBytes : record_bytes;
  std::uint32_t differences = 0;
  for (std::ptrdiff_t i = from; i < stop; ++i) differences |= id_at(records, i, bytes) ^ id_at(records, i - 1, bytes);
  return differences != 0;
}

// Records of 8 bytes, two at once as whole numbers with the id in the upper half. g++ 12 makes no vectors of the loop
// above; these are an extension of all compilers that penstock is built with, on any processor.
bool any_begins_in_words(const std::byte* records, std::ptrdiff_t from, std::ptrdiff_t stop) {
  using Words = std::uint64_t __attribute__((vector_size(16)));
  constexpr std::ptrdiff_t kAtOnce = 8;  // records
  Words differences{};
  for (; from + kAtOnce <= stop; from += kAtOnce) {
    for (std::ptrdiff_t i = from; i < from + kAtOnce; i += 2) {
      differences |= load<Words>(records + 8 * i) ^ load<Words>(records + 8 * (i - 1));
    }
  }
  return (differences[0] | differences[1]) >> 32 != 0 || any_begins<8>(records, from, stop, 8);
}

bool any_begins(const std::byte* records, std::ptrdiff_t from, std::ptrdiff_t stop, std::uint64_t record_bytes) {
  switch (record_bytes) {
    case 6: return any_begins<6>(records, from, stop, record_bytes);
    case 8: return any_begins_in_words(records, from, stop);
    default: return any_begins<0>(records, from, stop, record_bytes);
  }
}

void IdsFinder::find_runs(Row& row, const std::byte* row_records, IdsPiece& part) const {
  const Piece& piece = part.piece;
  const std::uint64_t bytes = dataset().stored_record_bytes;
  const std::byte* records = row_records + piece.start * bytes;
  const auto count = static_cast<std::ptrdiff_t>(piece.stop - piece.first);
  const auto differs = [&](std::ptrdiff_t i) { return id_at(records, i, bytes) != id_at(records, i - 1, bytes); };
  boost::container::small_vector<Run, 64> runs;
  runs.push_back({piece.start, 0, id_at(records, 0, bytes), true, true});
  for (std::ptrdiff_t from = 1; from < count; from += kRunBlock) {
    const std::ptrdiff_t stop = std::min(from + kRunBlock, count);
    if (!any_begins(records, from, stop, bytes)) continue;
    for (std::ptrdiff_t i = from; i < stop; ++i) {
      if (!differs(i)) continue;
      runs.back().stop = piece.start + static_cast<std::uint64_t>(i);
      runs.push_back({runs.back().stop, 0, id_at(records, i, bytes), true, true});
    }
  }
  runs.back().stop = piece.start + static_cast<std::uint64_t>(count);
  if (piece.has_lead) runs.front().begins = differs(0);
  if (piece.has_tail) runs.back().ends = differs(count);
  part.runs = {row.arena.make_array<Run>(runs.size()), runs.size()};
  std::copy(runs.begin(), runs.end(), part.runs.begin());
}

void IdsFinder::find_ids(Row& row, IdsPiece& part) const {
  const Shard& shard = this->shard(part.piece);
  auto* ids = row.arena.make_array<std::uint32_t>(part.runs.size());
  std::transform(part.runs.begin(), part.runs.end(), ids, [](const Run& run) { return run.id; });
  std::uint32_t* end = ids + part.runs.size();
  if (!std::is_sorted(ids, end)) std::sort(ids, end);
  end = std::unique(ids, end);
  part.ids = {ids, end};
  if (part.ids.back() >= shard.entries) {
    raise(ErrorKind::Corruption, "{}: metadata_id {} among records {} to {}, the shard has {} entries",
          shard.stream.path(), with_commas(part.ids.back()), with_commas(part.piece.first),
          with_commas(part.piece.stop), with_commas(shard.entries));
  }
}

void IdsFinder::plan_offsets(Row& row, IdsPiece& part, Reads& out) const {
  part.offsets = {row.arena.make_array<Wanted>(part.ids.size()), part.ids.size()};
  for (std::size_t i = 0; i < part.ids.size(); ++i) {
    part.offsets[i] = {kOffsetIndexEntryBytes * part.ids[i], kOffsetIndexEntryBytes * (part.ids[i] + std::uint64_t{2}),
                       nullptr};
  }
  plan_merged(row, shard(part.piece).index, part.offsets, out);
}

void IdsFinder::plan_entries(Row& row, IdsPiece& part, Reads& out) const {
  const Shard& shard = this->shard(part.piece);
  part.entries = {row.arena.make_array<Wanted>(part.ids.size()), part.ids.size()};
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < part.ids.size(); ++i) {
    const auto begin = load_at<std::uint64_t>(part.offsets[i].bytes, 0);
    const auto end = load_at<std::uint64_t>(part.offsets[i].bytes, 1);
    if (begin < last || end < begin || end > shard.data.bytes) {
      raise(ErrorKind::Corruption, "{}: entry {} is bytes {} to {}: out of order, or beyond the {} bytes of {}",
            shard.index.path(), with_commas(part.ids[i]), with_commas(begin), with_commas(end),
            with_commas(shard.data.bytes), shard.data.path());
    }
    part.entries[i] = {begin, end, nullptr};
    last = end;
  }
  plan_merged(row, shard.data, part.entries, out);
}

void IdsFinder::spans(const CutRow& cut, SpanTable& out) const {
  for (const IdsPiece& part : std::span(static_cast<const IdsPiece*>(cut.found), cut.pieces.size())) {
    for (const Run& run : part.runs) {
      Span& span = out.emplace_back(Span{run.start, run.stop, run.begins, run.ends});
      span.shard = static_cast<std::uint32_t>(part.piece.shard);
      span.entry = run.id;
      if (part.entries.empty()) continue;
      const auto found = std::lower_bound(part.ids.begin(), part.ids.end(), run.id) - part.ids.begin();
      const Wanted& entry = part.entries[static_cast<std::size_t>(found)];
      span.raw = entry.bytes;
      span.raw_bytes = entry.end - entry.begin;
    }
  }
}

}  // namespace

std::unique_ptr<const SpanFinder> make_ids_finder(DatasetPtr dataset) {
  return std::make_unique<IdsFinder>(std::move(dataset));
}

}  // namespace penstock::layout
