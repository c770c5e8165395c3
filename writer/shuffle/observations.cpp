#include "writer/shuffle/observations.h"

#include "core/base/checked.h"
#include "core/base/error.h"
#include "layout/dataset/folder.h"
#include "layout/dataset/format.h"
#include "writer/files/checked_input.h"

#include <algorithm>
#include <utility>

namespace penstock::writer {
namespace {

using layout::CompactIndexEntry;
using layout::Format;
using layout::ShardInfo;

void check_format(const std::string& path, const Format& format, bool windows) {
  if (format.is_ids()) {
    raise(ErrorKind::InvalidArgument,
          "{}: its layout is ids, whose entries may be shared: make it compact first (`penstock convert --layout "
          "compact`)",
          path);
  }
  if (windows && !format.has_records()) {
    raise(ErrorKind::InvalidArgument, "{}: it has no stream of records, only entries: shuffle its documents", path);
  }
  if (!windows && !format.has_metadata()) {
    raise(ErrorKind::InvalidArgument, "{}: a token stream does not say where its documents are: shuffle windows", path);
  }
}

}  // namespace

Observations::Observations(std::string path, const layout::Manifest& manifest, std::optional<std::uint64_t> window)
    : path_(std::move(path)), manifest_(manifest), window_(window) {
  check_format(path_, manifest.format, window.has_value());
  std::uint64_t records = 0;
  std::uint64_t spans = 0;
  for (const ShardInfo& shard : manifest.shards) {
    first_records_.push_back(records);
    first_spans_.push_back(spans);
    records = checked_add(records, shard.records, "records");
    spans = checked_add(spans, shard.entries, "documents");
  }
  if (window && *window == 0) raise(ErrorKind::InvalidArgument, "window is 0, must be at least 1");
  if (window && *window > records) {
    raise(ErrorKind::InvalidArgument, "{}: window {} is longer than the stream of {} records", path_,
          with_commas(*window), with_commas(records));
  }
  size_ = window ? records / *window : spans;
}

std::uint64_t Observations::index_bytes() const {
  if (!manifest_.format.has_metadata()) return 0;
  std::uint64_t bytes = 0;
  for (const ShardInfo& shard : manifest_.shards) {
    for (const layout::ShardFile& file : layout::shard_files(manifest_.format, shard)) {
      if (file.name == layout::kIndexName) bytes += file.bytes;
    }
  }
  return bytes;
}

std::uint64_t Observations::observation_at(std::uint64_t record) const noexcept {
  return std::min(record / *window_, size_);
}

// Of a span, or of a whole shard without spans: [begin, end) of the stream.
void Observations::cut(std::uint64_t begin, std::uint64_t end, Piece piece, const Take& take) const {
  if (!window_) {
    piece.records = end - begin;
    return take(piece);
  }
  do {
    piece.observation = observation_at(begin);
    const std::uint64_t stop = piece.observation == size_ ? end : std::min(end, (piece.observation + 1) * *window_);
    piece.records = stop - begin;
    take(piece);
    piece.begins_span = false;
    begin = stop;
  } while (begin < end);
}

void Observations::cut_compact(std::size_t shard, Progress& progress, const Take& take) const {
  const ShardInfo& info = manifest_.shards[shard];
  constexpr std::uint64_t kBytes = sizeof(CompactIndexEntry);
  CheckedInput index(layout::path_in(path_, info.name) + "/" + layout::kIndexName, (info.spans + 1) * kBytes, progress);
  auto here = index.value<CompactIndexEntry>(0);
  const auto refuse = [&](std::uint64_t i, const CompactIndexEntry& next) {
    raise(ErrorKind::Corruption, "{}: entry {} is ({}, {}), after ({}, {}), in a shard of {} records and {} bytes",
          index.path(), i, next.first_record, next.byte_offset, here.first_record, here.byte_offset, info.records,
          info.data_bytes);
  };
  if (here.first_record != 0 || here.byte_offset != 0) refuse(0, here);
  for (std::uint64_t i = 0; i < info.spans; ++i) {
    const auto next = index.value<CompactIndexEntry>((i + 1) * kBytes);
    if (next.first_record < here.first_record || next.byte_offset < here.byte_offset ||
        next.first_record > info.records || next.byte_offset > info.data_bytes) {
      refuse(i + 1, next);
    }
    Piece piece;
    piece.observation = first_spans_[shard] + i;
    piece.document = i;
    piece.entry_begin = here.byte_offset;
    piece.entry_bytes = next.byte_offset - here.byte_offset;
    piece.begins_span = true;
    piece.span_records = next.first_record - here.first_record;
    cut(first_records_[shard] + here.first_record, first_records_[shard] + next.first_record, piece, take);
    here = next;
  }
  if (here.first_record != info.records || here.byte_offset != info.data_bytes) refuse(info.spans, here);
}

void Observations::cut_opaque(std::size_t shard, Progress& progress, const Take& take) const {
  const ShardInfo& info = manifest_.shards[shard];
  constexpr std::uint64_t kBytes = layout::kOffsetIndexEntryBytes;
  CheckedInput index(layout::path_in(path_, info.name) + "/" + layout::kIndexName, (info.entries + 1) * kBytes,
                     progress);
  auto here = index.value<std::uint64_t>(0);
  bool fine = here == 0;
  for (std::uint64_t i = 0; fine && i < info.entries; ++i) {
    const auto next = index.value<std::uint64_t>((i + 1) * kBytes);
    fine = next >= here && next <= info.data_bytes;
    if (fine) take({first_spans_[shard] + i, 0, here, next - here, true, 0, i});
    here = next;
  }
  if (fine && here == info.data_bytes) return;
  raise(ErrorKind::Corruption, "{}: byte offsets that are not in order from 0 to the size of metadata.bin",
        index.path());
}

void Observations::of_shard(std::size_t shard, Progress& progress, const Take& take) const {
  const ShardInfo& info = manifest_.shards[shard];
  if (!manifest_.format.has_records()) return cut_opaque(shard, progress, take);
  if (manifest_.format.has_metadata()) return cut_compact(shard, progress, take);
  if (info.records != 0) cut(first_records_[shard], first_records_[shard] + info.records, {}, take);
}

}  // namespace penstock::writer
