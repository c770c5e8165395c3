#include "layout/windows/windows.h"

#include "core/base/checked.h"
#include "core/base/digest.h"
#include "core/rows/row_slice.h"
#include "layout/reading/checks.h"
#include "layout/values/with_columns.h"

#include <algorithm>
#include <array>
#include <boost/container/small_vector.hpp>
#include <cstring>
#include <memory>

namespace penstock::layout {

Windows::Windows(DatasetPtr dataset, std::uint64_t window, std::uint64_t lookahead, std::uint64_t phase_window)
    : dataset_(std::move(dataset)), window_(window), phase_window_(phase_window) {
  const std::string& path = dataset_->path;
  const std::uint64_t records = dataset_->record_count();
  if (dataset_->stored_record_bytes == 0) {
    raise(ErrorKind::InvalidArgument, "{}: it has no stream of records, only entries: use documents()", path);
  }
  if (dataset_->spans == SpanKind::Arrays) {
    raise(ErrorKind::InvalidArgument,
          "{}: its fields are arrays beside each other, which are no stream: use "
          "documents() or cells(), or `penstock import` it",
          path);
  }
  if (window == 0) raise(ErrorKind::InvalidArgument, "window is 0, must be at least 1");
  length_ = checked_add(window, lookahead, "window + lookahead", ErrorKind::InvalidArgument);
  if (length_ > records) {
    raise(ErrorKind::InvalidArgument, "{}: window {} + lookahead {} is longer than the stream of {} records", path,
          with_commas(window), with_commas(lookahead), with_commas(records));
  }
  finder_ = make_span_finder(dataset_);
  looks_at_records_ = finder_ != nullptr && finder_->looks_at_records();
  const std::uint64_t around = looks_at_records_ ? 1 : 0;
  info_ = info_of(*dataset_, (records - lookahead) / window);
  info_.shape = {false, length_, around, around};
  if (finder_ != nullptr) info_.keeps = finder_->keeps();
  info_.identity.view = fmt::format(R"({{"kind":"windows","lookahead":{},"window":{}}})", lookahead, window);
  if (phase_window == 0) return;
  const std::uint64_t units = (records - lookahead) / phase_window;
  if (phase_window % window != 0 || units < 2) {
    raise(ErrorKind::InvalidArgument,
          "{}: phase=\"random\" leaves a window out: {} records are not two windows of {} + lookahead {}", path,
          with_commas(records), with_commas(phase_window), with_commas(lookahead));
  }
  info_.size = (units - 1) * (phase_window / window);
  phases_ = records - lookahead - (units - 1) * phase_window + 1;
  info_.identity.view =
      fmt::format(R"({{"kind":"windows","lookahead":{},"phase":"random","window":{}}})", lookahead, window);
}

// Part of the view "random": never changed.
std::uint64_t Windows::phase_of(std::uint32_t epoch) const {
  if (phases_ == 0) return 0;
  std::array<std::byte, 16> bytes{};
  for (unsigned i = 0; i < 8; ++i) {
    bytes[i] = static_cast<std::byte>(phase_window_ >> (8 * i));
    bytes[8 + i] = static_cast<std::byte>(std::uint64_t{epoch} >> (8 * i));
  }
  std::uint64_t hash = 0;
  const DigestBytes digest = digest_of(bytes);
  for (const std::byte each : std::span(digest).first(8)) hash = hash << 8 | std::to_integer<std::uint64_t>(each);
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>(Wide{hash} * phases_ >> 64);
}

// Calls use(Piece) for each shard that has records of the row, in order.
template <typename Use>
void Windows::cut(const Row& row, const Use& use) const {
  const std::vector<std::uint64_t>& starts = dataset_->record_starts;
  const std::uint64_t begin = phase_of(row.epoch) + row.index * window_;
  const std::uint64_t end = begin + length_;
  for (std::uint64_t shard = Dataset::shard_of(starts, begin); shard + 1 < starts.size() && starts[shard] < end;
       ++shard) {
    if (starts[shard] == starts[shard + 1]) continue;
    const std::uint64_t from = std::max(begin, starts[shard]);
    use(Piece{shard, from - starts[shard], std::min(end, starts[shard + 1]) - starts[shard], from - begin});
  }
}

// In the row's arena, for rounds to come.
std::span<Piece> Windows::keep_pieces(Row& row) const {
  boost::container::small_vector<Piece, 8> cut_now;
  cut(row, [&](const Piece& piece) { cut_now.push_back(piece); });
  auto* pieces = reinterpret_cast<Piece*>(row.arena.allocate(cut_now.size() * sizeof(Piece)));
  std::uninitialized_copy(cut_now.begin(), cut_now.end(), pieces);
  return {pieces, cut_now.size()};
}

// For a finder that looks at records: the records beside the row are read too, which only its outer pieces can have.
// Returns where record 0 of the row goes.
std::byte* Windows::add_neighbours(Row& row, Parts wanted, std::span<Piece> pieces) const {
  for (Piece& piece : pieces) {
    piece.has_lead = piece.first > 0;
    piece.has_tail = piece.stop < dataset_->shards[piece.shard].records;
  }
  if (has(wanted, Parts::Records)) return row.records;
  const RowShape& shape = info_.shape;
  const std::uint64_t bytes = info_.stored_record_bytes;
  return row.arena.allocate((shape.lead + shape.length + shape.tail) * bytes) + shape.lead * bytes;
}

// What the row's slice wants of it. The rest is 0: columns are made of whole rows.
void Windows::plan_slice(const Row& row, std::span<const Piece> pieces, Reads& out) const {
  std::memset(row.records, 0, length_ * info_.stored_record_bytes);
  for (const Piece& piece : pieces) {
    const std::uint64_t end = piece.start + (piece.stop - piece.first);
    row.slice->for_each_read(piece.start, end, [&](std::uint64_t from, std::uint64_t to) {
      const std::uint64_t first = piece.first + (from - piece.start);
      plan_records(*dataset_, Piece{piece.shard, first, first + (to - from), from}, row.records, length_, out);
    });
  }
}

bool Windows::plan(Row& row, unsigned round, Parts wanted, Reads& out) const {
  const bool finds = finder_ != nullptr && has_spans(wanted);
  if (round == 0 && finds) return plan_spans(row, wanted, out);
  if (finds) return finder_->plan(row, *static_cast<CutRow*>(row.state), round, wanted, out);
  if (!has(wanted, Parts::Records)) return false;
  if (row.slice != nullptr) {
    plan_slice(row, keep_pieces(row), out);
  } else {
    cut(row, [&](const Piece& piece) { plan_records(*dataset_, piece, row.records, length_, out); });
  }
  return false;
}

// Round 0 of a row with spans.
bool Windows::plan_spans(Row& row, Parts wanted, Reads& out) const {
  const std::span<Piece> pieces = keep_pieces(row);
  std::byte* records = looks_at_records_ ? add_neighbours(row, wanted, pieces) : row.records;
  if (row.slice != nullptr && !looks_at_records_ && has(wanted, Parts::Records)) {
    plan_slice(row, pieces, out);
  } else if (looks_at_records_ || has(wanted, Parts::Records)) {
    for (const Piece& piece : pieces) plan_records(*dataset_, piece, records, length_, out);
  }
  auto* state = row.arena.make<CutRow>(pieces, records, nullptr);
  row.state = state;
  return finder_->plan(row, *state, 0, wanted, out);
}

void Windows::spans(const Row& row, SpanTable& out) const {
  if (finder_ != nullptr) finder_->spans(*static_cast<const CutRow*>(row.state), out);
}

std::shared_ptr<const Source> make_windows(const DatasetPtr& dataset, std::uint64_t window, std::uint64_t lookahead,
                                           const std::vector<std::string>& columns) {
  auto windows = std::make_shared<Windows>(dataset, window, lookahead);
  return checked(dataset, with_columns(dataset, std::move(windows), columns));
}

std::shared_ptr<const Source> make_windows_with_phase(const DatasetPtr& dataset, std::uint64_t window,
                                                      std::uint64_t lookahead, const std::vector<std::string>& columns,
                                                      std::uint64_t phase_window) {
  auto windows = std::make_shared<Windows>(dataset, window, lookahead, phase_window);
  return checked(dataset, with_columns(dataset, std::move(windows), columns));
}

}  // namespace penstock::layout
