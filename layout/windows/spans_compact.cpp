// The compact layout: metadata.directory -> metadata.index -> metadata.bin.
//
// A window of [a, b) of a shard costs one range of each: the directory's entries around it name the spans among which
// its own are, the index says where those begin, and the entries of those that meet the window lie end to end. What has
// been read of the three files is kept where they fit (KeptMetadata), so most windows cost their records alone.
//
// Only where documents without records lie among them by the thousand is that too much: a window delivers none of them,
// but the directory counts them all. The spans that meet the window are then found by halving, page by page, and their
// entries are read in as many ranges as the limit of layout/reading/reads.h asks for.
#include "core/base/error.h"
#include "layout/reading/compact_index.h"
#include "layout/reading/kept_blocks.h"
#include "layout/reading/kept_metadata.h"
#include "layout/reading/reads.h"
#include "layout/windows/span_finder.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

namespace penstock::layout {
namespace {

constexpr std::uint64_t kStep = kDirectoryStride;
constexpr std::uint64_t kPageEntries = 4096 / sizeof(CompactIndexEntry);

// A span with records in the piece.
struct FoundSpan {
  std::uint64_t number = 0;
  CompactIndexEntry from{};
  CompactIndexEntry to{};
};

// What is known of one piece.
struct CompactPiece {
  Piece piece;
  KeptRange directory;  // first: the entries around the piece
  std::uint64_t directory_entries = 0;
  // Then: the span that has record `target` is in [low, high), all of the piece's are below `top`; index entries
  // [begin, end) are read.
  bool searches = false;
  std::uint64_t target = 0;
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  std::uint64_t top = 0;
  bool halve = false;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  KeptRange index;
  std::uint64_t index_entries = 0;  // that are read at once
  FoundSpan* found = nullptr;       // the spans before `target`, in order
  std::uint64_t count = 0;
  Wanted* entries = nullptr;  // the last round, if entries are wanted: where that of each is …
  KeptRange data;             // … if all of them are one range

  [[nodiscard]] bool complete() const noexcept { return target >= piece.stop; }
  [[nodiscard]] CompactIndexEntry entry(std::uint64_t number) const noexcept {
    return load_span_start(index.bytes, number - begin);
  }
};

class CompactFinder final : public SpanFinder {
 public:
  explicit CompactFinder(DatasetPtr dataset);

  [[nodiscard]] std::shared_ptr<Allowance> keeps() const noexcept override { return kept_.allowance(); }
  bool plan(Row& row, CutRow& cut, unsigned round, Parts wanted, Reads& out) const override;
  void spans(const CutRow& cut, SpanTable& out) const override;

 private:
  void take_reads(CompactPiece& part) const;
  bool go_on(Row& row, CompactPiece& part, Reads& out) const;
  void plan_directory(Row& row, CompactPiece& part, Reads& out) const;
  void begin_search(Row& row, CompactPiece& part) const;
  void plan_index(Row& row, CompactPiece& part, Reads& out) const;
  void search(CompactPiece& part) const;
  [[nodiscard]] bool find_target(CompactPiece& part) const;
  void plan_entries(Row& row, CompactPiece& part, Reads& out) const;

  KeptMetadata kept_;
};

CompactFinder::CompactFinder(DatasetPtr dataset) : SpanFinder(std::move(dataset)), kept_(this->dataset().shards) {
  for (const Shard& shard : this->dataset().shards) check_compact(shard);
}

bool CompactFinder::plan(Row& row, CutRow& cut, unsigned round, Parts wanted, Reads& out) const {
  if (round == 0) {
    auto* parts = row.arena.make_array<CompactPiece>(cut.pieces.size());
    cut.found = parts;
    for (const Piece& piece : cut.pieces) {
      parts->piece = piece;
      plan_directory(row, *parts++, out);
    }
  }
  const std::span parts(static_cast<CompactPiece*>(cut.found), cut.pieces.size());
  bool complete = true;
  for (CompactPiece& part : parts) {
    if (round > 0) take_reads(part);
    if (!go_on(row, part, out)) complete = false;
  }
  if (!complete) return true;
  if (has(wanted, Parts::Entries)) {
    for (CompactPiece& part : parts) plan_entries(row, part, out);
  }
  return false;
}

void CompactFinder::take_reads(CompactPiece& part) const {
  part.directory.end();
  part.index.end();
}

// As far as the bytes that are there allow; true if all of the piece's spans are found.
bool CompactFinder::go_on(Row& row, CompactPiece& part, Reads& out) const {
  while (!part.complete() && !part.directory.reading && !part.index.reading) {
    if (part.searches) {
      search(part);
    } else {
      begin_search(row, part);
    }
    if (!part.complete()) plan_index(row, part, out);
  }
  return part.complete();
}

void CompactFinder::plan_directory(Row& row, CompactPiece& part, Reads& out) const {
  const std::uint64_t first = part.piece.first / kStep;
  part.directory_entries = (part.piece.stop - 1) / kStep + 2 - first;
  part.directory.begin(row, shard(part.piece).directory, kept_.shard(part.piece.shard).directory.get(),
                       first * kDirectoryEntryBytes, part.directory_entries * kDirectoryEntryBytes, out);
}

void CompactFinder::begin_search(Row& row, CompactPiece& part) const {
  const Shard& shard = this->shard(part.piece);
  part.searches = true;
  part.low = load<std::uint64_t>(part.directory.bytes);
  // The span that covers the record at the next step may begin inside the piece.
  const std::uint64_t covers = load_at<std::uint64_t>(part.directory.bytes, part.directory_entries - 1);
  if (part.low >= shard.spans || covers < part.low || covers > shard.spans) {
    raise(ErrorKind::Corruption, "{}: entries {} and {} around record {}, the shard has {} spans",
          shard.directory.path(), with_commas(part.low), with_commas(covers), with_commas(part.piece.first),
          with_commas(shard.spans));
  }
  part.directory.keep();
  part.top = std::min(covers + 1, shard.spans);
  part.high = part.top;
  part.target = part.piece.first;
  // At once, unless most of them surely are empty: between the steps each record is of one span.
  const std::uint64_t all = part.high - part.low + 1;
  const std::uint64_t useful = part.directory_entries * kStep + kPageEntries;
  part.index_entries = all <= kMaxReadAmplification * useful ? all : kPageEntries;
  part.found = row.arena.make_array<FoundSpan>(std::min(part.high - part.low, part.piece.stop - part.piece.first));
}

// All of [low, high] where it fits; else a page: the next one, and where that did not have the target, the middle one.
void CompactFinder::plan_index(Row& row, CompactPiece& part, Reads& out) const {
  const std::uint64_t count = std::min(part.high - part.low + 1, part.index_entries);
  part.begin = part.halve ? part.low + (part.high - part.low + 1 - count) / 2 : part.low;
  part.end = part.begin + count;
  part.index.begin(row, shard(part.piece).index, kept_.shard(part.piece.shard).index.get(),
                   part.begin * sizeof(CompactIndexEntry), count * sizeof(CompactIndexEntry), out);
}

// Takes all spans that the entries read have; what is left has a smaller [low, high), or a later target.
void CompactFinder::search(CompactPiece& part) const {
  check_span_starts(shard(part.piece), part.index.bytes, part.begin, part.end - 1);
  part.index.keep();
  part.halve = true;
  while (!part.complete() && find_target(part)) {
    part.low = part.found[part.count - 1].number + 1;
    part.high = part.top;
    part.halve = false;
  }
}

// The span that has the target, if its entry and the next one are read; else the half of [low, high) that has it.
bool CompactFinder::find_target(CompactPiece& part) const {
  const auto fail = [&] {
    const Shard& shard = this->shard(part.piece);
    raise(ErrorKind::Corruption, "{}: spans {} to {} do not have record {}, as {} says", shard.index.path(),
          with_commas(part.low), with_commas(part.high), with_commas(part.target), shard.directory.path());
  };
  std::uint64_t number = std::max(part.low, part.begin);
  if (part.entry(number).first_record > part.target) {
    if (number == part.low) fail();
    part.high = number;
    return false;
  }
  while (number + 1 < part.end && part.entry(number + 1).first_record <= part.target) ++number;
  if (number + 1 == part.end) {
    if (number >= part.high) fail();
    part.low = number;
    return false;
  }
  part.found[part.count++] = {number, part.entry(number), part.entry(number + 1)};
  part.target = part.entry(number + 1).first_record;
  return true;
}

// The entries of those spans alone: they lie end to end but for those of empty spans between them.
void CompactFinder::plan_entries(Row& row, CompactPiece& part, Reads& out) const {
  const Shard& shard = this->shard(part.piece);
  const std::span<Wanted> wanted(row.arena.make_array<Wanted>(part.count), part.count);
  std::uint64_t least = 0;
  for (std::uint64_t i = 0; i < part.count; ++i) {
    wanted[i] = {part.found[i].from.byte_offset, part.found[i].to.byte_offset, nullptr};
    if (wanted[i].begin < std::exchange(least, wanted[i].end)) {
      raise(ErrorKind::Corruption, "{}: the entry of span {} begins before the one before it ends", shard.index.path(),
            with_commas(part.found[i].number));
    }
  }
  part.entries = wanted.data();
  if (!is_one_read(wanted)) return plan_merged(row, shard.data, wanted, out);
  const std::uint64_t begin = wanted.front().begin;
  part.data.begin(row, shard.data, kept_.shard(part.piece.shard).data.get(), begin, wanted.back().end - begin, out);
  for (Wanted& range : wanted) range.bytes = part.data.bytes + (range.begin - begin);
}

void append_spans(const CompactPiece& part, SpanTable& out) {
  const Piece& piece = part.piece;
  for (std::uint64_t i = 0; i < part.count; ++i) {
    const FoundSpan& found = part.found[i];
    const std::uint64_t start = std::max(found.from.first_record, piece.first);
    Span& span = out.emplace_back();
    span.start = piece.at(start);
    span.stop = piece.at(std::min(found.to.first_record, piece.stop));
    span.begins = found.from.first_record >= piece.first;
    span.ends = found.to.first_record <= piece.stop;
    span.offset = static_cast<std::int64_t>(start - found.from.first_record);
    span.shard = static_cast<std::uint32_t>(piece.shard);
    span.entry = found.number;
    if (part.entries == nullptr) continue;
    span.raw = part.entries[i].bytes;
    span.raw_bytes = part.entries[i].end - part.entries[i].begin;
  }
}

void CompactFinder::spans(const CutRow& cut, SpanTable& out) const {
  for (CompactPiece& part : std::span(static_cast<CompactPiece*>(cut.found), cut.pieces.size())) {
    part.data.end();
    part.data.keep();
    append_spans(part, out);
  }
}

}  // namespace

std::unique_ptr<const SpanFinder> make_compact_finder(DatasetPtr dataset) {
  return std::make_unique<CompactFinder>(std::move(dataset));
}

}  // namespace penstock::layout
