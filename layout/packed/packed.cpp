#include "layout/packed/packed.h"

#include "core/base/align.h"
#include "core/base/error.h"
#include "core/rows/row_slice.h"
#include "layout/reading/checks.h"
#include "layout/reading/reads.h"
#include "layout/values/with_columns.h"
#include "layout/windows/pieces.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

namespace penstock::layout {

struct Packed::Piece {
  Document document;
  bool is_found = false;
  std::uint64_t offset = 0;  // of its first record in the document
  std::uint64_t start = 0;   // … and in the row
  std::uint64_t length = 0;
};

struct Packed::State {
  PackTable::Pieces table;
  bool knows_pieces = false;
  Piece* pieces = nullptr;
  std::uint64_t count = 0;
  unsigned find_round = 0;
};

namespace {

// Arguments that are not the defaults are there only where they were given, so that states of before them still load.
std::string identity_of(const PackingRule& rule, std::uint64_t lookahead, const std::string& token_rule) {
  nlohmann::json view = nlohmann::json::parse(fmt::format(R"({{{}"kind":"packed"}})", token_rule));
  view["fit"] = fit_name(rule.fit);
  view["window"] = rule.window - lookahead;
  if (lookahead > 0) view["lookahead"] = lookahead;
  if (rule.fill == Fill::Exact) {
    view["fill"] = fill_name(rule.fill);
    if (rule.fit == Fit::Best) {
      view["buffer"] = rule.buffer;
      view["refill"] = rule.refill;
    }
  } else {
    view["group"] = rule.group;
    view["multiple_of"] = rule.multiple_of;
    if (rule.max_document == 0) view["long"] = long_name(rule.long_documents);
  }
  if (rule.max_document != 0) {
    view["cut"] = long_name(rule.long_documents);
    view["max_document"] = rule.max_document;
  }
  if (rule.max_documents != 0) view["max_documents"] = rule.max_documents;
  return view.dump();  // its members are sorted
}

}  // namespace

Packed::Packed(DatasetPtr dataset, std::shared_ptr<const PackTable> table, std::uint64_t lookahead)
    : dataset_(std::move(dataset)), table_(std::move(table)), rule_(table_->header().rule) {
  const PackHeader& header = table_->header();
  check_has_rows(header, dataset_->path);
  if (lookahead >= rule_.window) {
    raise(ErrorKind::InvalidArgument, "lookahead={}: a packed row has {} records with it", with_commas(lookahead),
          with_commas(rule_.window));
  }
  finder_ = make_document_finder(*dataset_);
  info_ = info_of(*dataset_, header.rows);
  info_.shape = {false, rule_.window, 0, 0};
  info_.keeps = finder_->keeps();
  info_.packed_multiple = rule_.multiple_of;
  info_.identity.view = identity_of(rule_, lookahead, dataset_->token_rule);
  if (header.where.empty()) return;
  info_.identity.view.pop_back();
  info_.identity.view += fmt::format(R"(,"where":{}}})", header.where);
}

namespace {

// Makes one of the last two reads where the first of them ends where the other begins, in file and row.
void join_last(Reads& out) {
  const Read& next = out.back();
  Read& last = *(out.end() - 2);
  if (last.file != next.file || last.offset + last.size != next.offset) return;
  if (last.destination + last.size != next.destination) return;
  last.size += next.size;
  out.pop_back();
}

}  // namespace

bool Packed::plan(Row& row, unsigned round, Parts wanted, Reads& out) const {
  if (round == 0) row.state = row.arena.make<State>();
  State& state = *static_cast<State*>(row.state);
  if (!state.knows_pieces) {
    if (table_->plan(row, row.index, round, state.table, out)) return true;
    state.knows_pieces = true;
    begin(row, state);
  }
  if (find(row, state, wanted, out)) return true;
  place(row, state);
  plan_parts(row, state, wanted, out);
  return false;
}

void Packed::begin(Row& row, State& state) const {
  const std::span<const PackedPiece> pieces = state.table.pieces;
  const std::vector<std::uint64_t>& starts = dataset_->span_starts;
  state.count = pieces.size();
  state.pieces = row.arena.make_array<Piece>(pieces.size());
  std::uint64_t shard = 0;  // groups of documents do not cross shards
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const std::uint64_t number = pieces[i].document();
    if (number >= starts.back()) {
      raise(ErrorKind::Corruption, "{}: packed row {} has document {} of {}", dataset_->path, with_commas(row.index),
            with_commas(number), with_commas(starts.back()));
    }
    Document& document = state.pieces[i].document;
    if (number < starts[shard] || number >= starts[shard + 1]) shard = Dataset::shard_of(starts, number);
    document.shard = shard;
    document.number = number - starts[shard];
    finder_->expect(document);
  }
}

// True while reads that tell where a piece lies are on their way.
bool Packed::find(Row& row, State& state, Parts wanted, Reads& out) const {
  bool is_reading = false;
  for (Piece& piece : std::span(state.pieces, state.count)) {
    if (piece.is_found) continue;
    const Shard& shard = dataset_->shards[piece.document.shard];
    piece.is_found = !finder_->find(row, shard, state.find_round, wanted, piece.document, out);
    is_reading |= !piece.is_found;
  }
  ++state.find_round;
  return is_reading;
}

void Packed::place(Row& row, State& state) const {
  const std::span<const PackedPiece> packed = state.table.pieces;
  const std::uint64_t most = rule_.most();
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < state.count; ++i) {
    Piece& piece = state.pieces[i];
    const std::uint64_t records = piece.document.records;
    const std::uint64_t part = packed[i].part();
    piece.offset = part * most;  // below 2^24 * 2^24
    piece.start = align_up(end, rule_.multiple_of);
    const bool may_cut =
        rule_.long_documents == LongDocuments::Split || rule_.long_documents == LongDocuments::Truncate;
    bool can_be = piece.offset < records && (part == 0 || rule_.long_documents == LongDocuments::Split) &&
                  (may_cut || records <= most);
    piece.length = can_be ? std::min(most, records - piece.offset) : 0;
    if (rule_.fill == Fill::Exact && i + 1 == state.count) {  // reaches to the row's end, or beyond
      const std::uint64_t room = rule_.window - std::min(piece.start, rule_.window);
      can_be &= room > 0 && piece.length >= room;
      piece.length = std::min(piece.length, room);
    }
    end = piece.start + piece.length;
    if (can_be && end <= rule_.window) continue;
    raise(ErrorKind::Corruption,
          "{}: packed row {} does not hold piece {} of document {}, which has {} records: the index or the table "
          "changed since the rows were packed",
          dataset_->path, with_commas(row.index), with_commas(part), with_commas(packed[i].document()),
          with_commas(records));
  }
}

// Reads the part of each piece that the row's slice wants; the rest is 0.
void Packed::plan_slice(Row& row, const State& state, Reads& out) const {
  const std::uint64_t record_bytes = info_.stored_record_bytes;
  std::memset(row.records, 0, rule_.window * record_bytes);
  for (const Piece& piece : std::span<const Piece>(state.pieces, state.count)) {
    const Shard& shard = dataset_->shards[piece.document.shard];
    const std::uint64_t first = piece.document.first_record + piece.offset;
    row.slice->for_each_read(piece.start, piece.start + piece.length, [&](std::uint64_t from, std::uint64_t to) {
      plan_stream(*dataset_, shard, first + (from - piece.start), to - from, {row.records, from, rule_.window}, out);
    });
  }
}

void Packed::plan_parts(Row& row, State& state, Parts wanted, Reads& out) const {
  const std::uint64_t record_bytes = info_.stored_record_bytes;
  const std::span pieces(state.pieces, state.count);
  if (has(wanted, Parts::Records) && row.slice != nullptr) {
    plan_slice(row, state, out);
  } else if (has(wanted, Parts::Records)) {
    const std::size_t first = out.size();
    std::uint64_t end = 0;
    if (info_.fields_apart) std::memset(row.records, 0, rule_.window * record_bytes);
    for (const Piece& piece : pieces) {
      const Document& document = piece.document;
      const Shard& shard = dataset_->shards[document.shard];
      if (piece.start > end && !info_.fields_apart) {
        std::memset(row.records + end * record_bytes, 0, (piece.start - end) * record_bytes);
      }
      const std::size_t before = out.size();
      plan_stream(*dataset_, shard, document.first_record + piece.offset, piece.length,
                  {row.records, piece.start, rule_.window}, out);
      if (before > first && out.size() == before + 1) join_last(out);
      end = piece.start + piece.length;
    }
    if (!info_.fields_apart) std::memset(row.records + end * record_bytes, 0, (rule_.window - end) * record_bytes);
  }
  if (!has(wanted, Parts::Entries)) return;
  for (Piece& piece : pieces) {
    Document& document = piece.document;
    const File& data = dataset_->shards[document.shard].data;
    document.raw = plan_read(row, data, document.entry_begin, document.entry_bytes, out);
  }
}

void Packed::spans(const Row& row, SpanTable& out) const {
  const State& state = *static_cast<const State*>(row.state);
  for (const Piece& piece : std::span<const Piece>(state.pieces, state.count)) {
    const Document& document = piece.document;
    const std::uint64_t raw_bytes = document.raw == nullptr ? 0 : document.entry_bytes;
    out.push_back({piece.start, piece.start + piece.length, piece.offset == 0,
                   piece.offset + piece.length == document.records, static_cast<std::int64_t>(piece.offset),
                   static_cast<std::uint32_t>(document.shard), document.number, document.raw, raw_bytes});
  }
}

std::shared_ptr<const Source> make_packed(const DatasetPtr& dataset, std::shared_ptr<const PackTable> table,
                                          const std::vector<std::string>& columns, std::uint64_t lookahead) {
  auto packed = std::make_shared<Packed>(dataset, std::move(table), lookahead);
  return checked(dataset, with_columns(dataset, std::move(packed), columns));
}

}  // namespace penstock::layout
