#include "layout/windows.h"

#include "core/base/checked.h"
#include "layout/reads.h"

#include <algorithm>

namespace penstock::layout {
Windows::Windows(DatasetPtr dataset, std::uint64_t window, std::uint64_t lookahead)
    : dataset_(std::move(dataset)), window_(window) {
  const std::string& path = dataset_->path;
  const std::uint64_t records = dataset_->record_count();
  if (dataset_->stored_record_bytes == 0) {
    raise(ErrorKind::InvalidArgument, "{}: it has no stream of records, only entries: use documents()", path);
  }
  if (window == 0) raise(ErrorKind::InvalidArgument, "window is 0, must be at least 1");
  length_ = checked_add(window, lookahead, "window + lookahead", ErrorKind::InvalidArgument);
  if (length_ > records) {
    raise(ErrorKind::InvalidArgument, "{}: window {} + lookahead {} is longer than the stream of {} records", path,
          with_commas(window), with_commas(lookahead), with_commas(records));
  }
  size_ = (records - lookahead) / window;
}

std::string Windows::identity() const {
  return fmt::format(R"({{"kind":"windows","lookahead":{},"window":{}}})", length_ - window_, window_);
}

std::span<Piece> Windows::cut(Row& row) const {
  const std::vector<std::uint64_t>& starts = dataset_->record_starts;
  const std::uint64_t begin = row.index * window_;
  const std::uint64_t end = begin + length_;
  const std::uint64_t first = Dataset::shard_of(starts, begin);
  std::uint64_t last = first;
  std::uint64_t count = 0;
  for (; last + 1 < starts.size() && starts[last] < end; ++last) count += starts[last] < starts[last + 1] ? 1 : 0;
  Piece* pieces = row.arena.make_array<Piece>(count);
  Piece* next = pieces;
  for (std::uint64_t shard = first; shard < last; ++shard) {
    if (starts[shard] == starts[shard + 1]) continue;
    const std::uint64_t from = std::max(begin, starts[shard]);
    *next++ = {shard, from - starts[shard], std::min(end, starts[shard + 1]) - starts[shard], from - begin};
  }
  return {pieces, count};
}

void Windows::plan_records(const Row& row, const Piece& piece, std::uint64_t first, std::uint64_t stop,
                           Reads& out) const {
  const std::uint64_t bytes = dataset_->stored_record_bytes;
  // Unsigned wrap-around on purpose: `first` may be one record before the piece.
  std::byte* destination = row.records + static_cast<std::ptrdiff_t>(piece.at(first) * bytes);
  plan_read(shard(piece).stream, shard(piece).stream_offset + first * bytes, (stop - first) * bytes, destination, out);
}

bool Windows::plan(Row& row, unsigned /*stage*/, Reads& out) const {
  for (const Piece& piece : cut(row)) plan_records(row, piece, piece.first, piece.stop, out);
  return false;
}

std::shared_ptr<const Source> make_windows(DatasetPtr dataset, std::uint64_t window, std::uint64_t lookahead) {
  switch (dataset->spans) {
    case SpanKind::Compact: return make_compact_windows(std::move(dataset), window, lookahead);
    case SpanKind::Ids: return make_ids_windows(std::move(dataset), window, lookahead);
    case SpanKind::Megatron: return make_megatron_windows(std::move(dataset), window, lookahead);
    case SpanKind::None:
    case SpanKind::Opaque: break;
  }
  return std::make_shared<Windows>(std::move(dataset), window, lookahead);
}

}  // namespace penstock::layout
