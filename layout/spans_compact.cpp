// The compact layout: metadata.directory -> metadata.index -> metadata.bin.
//
// A window of [a, b) of a shard costs one range of each: the directory's entries around it name the spans among which
// its own are, the index says where those begin, and the entries of those that meet the window lie end to end.
#include "layout/spans_compact.h"

#include "core/checked.h"
#include "layout/reads.h"
#include "layout/windows.h"

#include <algorithm>

namespace penstock::layout {
namespace {

constexpr std::uint64_t kStep = kDirectoryStride;

// What is known of one piece after each stage.
struct CompactPiece {
  Piece piece;
  const std::byte* directory = nullptr;  // stage 0: the entries around the piece
  std::uint64_t directory_entries = 0;
  std::uint64_t low = 0;  // stage 1: spans [low, high) and the entry after them are read of the index
  std::uint64_t high = 0;
  const std::byte* index = nullptr;
  std::uint64_t first = 0;  // stage 2: spans [first, stop) meet the piece (empty ones between them too)
  std::uint64_t stop = 0;
  const std::byte* data = nullptr;

  [[nodiscard]] CompactIndexEntry span(std::uint64_t number) const noexcept {
    return load_span_start(index, number - low);
  }
};

struct State {
  CompactPiece* pieces;
  std::uint64_t count;
};

class CompactWindows final : public Windows {
 public:
  CompactWindows(DatasetPtr dataset, std::uint64_t window, std::uint64_t lookahead)
      : Windows(std::move(dataset), window, lookahead) {
    for (const Shard& shard : this->dataset().shards) check_compact(shard);
  }

  bool plan(Row& row, unsigned stage, Reads& out) const override;
  void spans(Row& row) const override;

 private:
  void plan_directory(Row& row, CompactPiece& part, Reads& out) const;
  void plan_index(Row& row, CompactPiece& part, Reads& out) const;
  void plan_entries(Row& row, CompactPiece& part, Reads& out) const;
};

bool CompactWindows::plan(Row& row, unsigned stage, Reads& out) const {
  if (stage == 0) {
    const std::span<Piece> pieces = cut(row);
    auto* parts = row.arena.make_array<CompactPiece>(pieces.size());
    row.state = row.arena.make<State>(parts, pieces.size());
    for (const Piece& piece : pieces) {
      plan_records(row, piece, piece.first, piece.stop, out);
      parts->piece = piece;
      plan_directory(row, *parts++, out);
    }
    return true;
  }
  const State& state = *static_cast<const State*>(row.state);
  for (std::uint64_t i = 0; i < state.count; ++i) {
    if (stage == 1) plan_index(row, state.pieces[i], out);
    if (stage == 2) plan_entries(row, state.pieces[i], out);
  }
  return stage < 2;
}

void CompactWindows::plan_directory(Row& row, CompactPiece& part, Reads& out) const {
  const std::uint64_t first = part.piece.first / kStep;
  part.directory_entries = (part.piece.stop - 1) / kStep + 2 - first;
  part.directory = plan_read(row, shard(part.piece).directory, first * kDirectoryEntryBytes,
                             part.directory_entries * kDirectoryEntryBytes, out);
}

void CompactWindows::plan_index(Row& row, CompactPiece& part, Reads& out) const {
  const Shard& shard = this->shard(part.piece);
  part.low = load<std::uint64_t>(part.directory);
  // The span that covers the record at the next step may begin inside the piece.
  const std::uint64_t covers = load_at<std::uint64_t>(part.directory, part.directory_entries - 1);
  if (part.low >= shard.spans || covers < part.low || covers > shard.spans) {
    raise(ErrorKind::Corruption, "{}: entries {} and {} around record {}, the shard has {} spans", shard.directory.path,
          with_commas(part.low), with_commas(covers), with_commas(part.piece.first), with_commas(shard.spans));
  }
  part.high = std::min(covers + 1, shard.spans);
  const std::uint64_t bytes = (part.high - part.low + 1) * sizeof(CompactIndexEntry);
  part.index = plan_read(row, shard.index, part.low * sizeof(CompactIndexEntry), bytes, out);
}

void CompactWindows::plan_entries(Row& row, CompactPiece& part, Reads& out) const {
  const Shard& shard = this->shard(part.piece);
  check_span_starts(shard, part.index, part.low, part.high);
  if (part.span(part.low).first_record > part.piece.first || part.span(part.high).first_record < part.piece.stop) {
    raise(ErrorKind::Corruption, "{}: spans {} to {} do not cover records {} to {}, as {} says", shard.index.path,
          part.low, part.high, with_commas(part.piece.first), with_commas(part.piece.stop), shard.directory.path);
  }
  part.first = part.low;
  while (part.span(part.first + 1).first_record <= part.piece.first) ++part.first;
  part.stop = part.first + 1;
  while (part.span(part.stop).first_record < part.piece.stop) ++part.stop;
  const std::uint64_t begin = part.span(part.first).byte_offset;
  part.data = plan_read(row, shard.data, begin, part.span(part.stop).byte_offset - begin, out);
}

void append_spans(const CompactPiece& part, std::vector<Span>& out) {
  const Piece& piece = part.piece;
  const std::uint64_t data_begin = part.span(part.first).byte_offset;
  for (std::uint64_t number = part.first; number < part.stop; ++number) {
    const CompactIndexEntry from = part.span(number);
    const CompactIndexEntry to = part.span(number + 1);
    if (from.first_record == to.first_record) continue;  // an empty span covers no record
    const std::uint64_t start = std::max(from.first_record, piece.first);
    Span& span = out.emplace_back();
    span.start = piece.at(start);
    span.stop = piece.at(std::min(to.first_record, piece.stop));
    span.begins = from.first_record >= piece.first;
    span.ends = to.first_record <= piece.stop;
    span.offset = static_cast<std::int64_t>(start - from.first_record);
    span.shard = static_cast<std::uint32_t>(piece.shard);
    span.entry = number;
    span.raw = part.data + (from.byte_offset - data_begin);
    span.raw_bytes = to.byte_offset - from.byte_offset;
  }
}

void CompactWindows::spans(Row& row) const {
  const State& state = *static_cast<const State*>(row.state);
  for (std::uint64_t i = 0; i < state.count; ++i) append_spans(state.pieces[i], row.spans);
}

}  // namespace

void check_compact(const Shard& shard) {
  const auto check = [](const File& file, std::uint64_t wanted) {
    if (file.bytes == wanted) return;
    raise(ErrorKind::Corruption, "{}: {} bytes, its shard's counts want {}", file.path, with_commas(file.bytes),
          with_commas(wanted));
  };
  const char* name = shard.name.c_str();
  check(shard.index, checked_mul(checked_add(shard.spans, 1, name), sizeof(CompactIndexEntry), name));
  check(shard.directory, directory_entries(shard.records) * kDirectoryEntryBytes);
}

CompactIndexEntry load_span_start(const std::byte* index, std::uint64_t number) noexcept {
  return {load_at<std::uint64_t>(index, 2 * number), load_at<std::uint64_t>(index, 2 * number + 1)};
}

void check_span_starts(const Shard& shard, const std::byte* index, std::uint64_t low, std::uint64_t high) {
  const auto fail = [&](std::uint64_t number, CompactIndexEntry seen) {
    raise(ErrorKind::Corruption, "{}: entry {} is (record {}, byte {}): out of order or beyond {} records, {} bytes",
          shard.index.path, with_commas(number), with_commas(seen.first_record), with_commas(seen.byte_offset),
          with_commas(shard.records), with_commas(shard.data.bytes));
  };
  CompactIndexEntry last = load_span_start(index, 0);
  if (low == 0 && (last.first_record != 0 || last.byte_offset != 0)) fail(0, last);
  for (std::uint64_t number = low + 1; number <= high; ++number) {
    const CompactIndexEntry next = load_span_start(index, number - low);
    if (next.first_record < last.first_record || next.byte_offset < last.byte_offset) fail(number, next);
    last = next;
  }
  if (last.first_record > shard.records || last.byte_offset > shard.data.bytes) fail(high, last);
  if (high == shard.spans && (last.first_record != shard.records || last.byte_offset != shard.data.bytes))
    fail(high, last);
}

std::shared_ptr<const Source> make_compact_windows(DatasetPtr dataset, std::uint64_t window, std::uint64_t lookahead) {
  return std::make_shared<CompactWindows>(std::move(dataset), window, lookahead);
}

}  // namespace penstock::layout
