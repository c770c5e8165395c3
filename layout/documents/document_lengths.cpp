#include "layout/documents/document_lengths.h"

#include "core/base/error.h"
#include "layout/dataset/format.h"
#include "layout/documents/document_bounds.h"
#include "layout/documents/document_table.h"
#include "layout/documents/documents.h"
#include "layout/foreign/field_arrays.h"
#include "layout/foreign/megatron.h"
#include "layout/reading/block_reader.h"
#include "layout/reading/compact_index.h"

#include <algorithm>
#include <vector>

namespace penstock::layout {
namespace {

constexpr std::uint64_t kChunkDocuments = 1U << 18;

void read_compact(const Shard& shard, std::uint64_t first, std::span<std::uint64_t> out, BlockReader& reader) {
  constexpr std::uint64_t kBytes = sizeof(CompactIndexEntry);
  const std::byte* const entries = reader.read(first * kBytes, (out.size() + 1) * kBytes).data();
  check_span_starts(shard, entries, first, first + out.size());
  for (std::uint64_t i = 0; i < out.size(); ++i) {
    out[i] = load_span_start(entries, i + 1).first_record - load_span_start(entries, i).first_record;
  }
}

void read_bounds(const Shard& shard, std::uint64_t first, std::span<std::uint64_t> out, BlockReader& reader) {
  const DocumentBounds::Place place = shard.bounds->place(first, first + out.size());
  std::vector<std::uint64_t> starts(out.size() + 1);
  shard.bounds->starts(shard, first, reader.read(place.offset, place.bytes).data(), starts);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = starts[i + 1] - starts[i];
}

// Where each of the sequences begins, which do not fall, and where the documents that begin there do.
void read_megatron(const Shard& shard, std::uint64_t first, std::span<std::uint64_t> out, BlockReader& reader) {
  const MegatronIndex& index = *shard.megatron;
  const auto fail = [&](std::uint64_t document) {
    raise(ErrorKind::Corruption, "{}: document {} ends before it begins: the file changed after it was opened",
          shard.index.path(), with_commas(document));
  };
  const auto numbers = reader.read(index.documents_offset + 8 * first, 8 * (out.size() + 1));
  std::vector<std::uint64_t> sequences(out.size() + 1);
  std::memcpy(sequences.data(), numbers.data(), numbers.size());
  std::vector<std::uint64_t> tokens(sequences.size());
  constexpr std::uint64_t kMostSequences = kChunkDocuments;
  for (std::size_t i = 0; i < sequences.size();) {
    const std::uint64_t from = sequences[i];
    if (from > index.sequences) fail(first + i);
    const std::uint64_t count = std::min(kMostSequences, index.sequences - from);
    const std::byte* const pointers = reader.read(index.pointers_offset + 8 * from, 8 * count).data();
    const std::size_t before = i;
    for (; i < sequences.size(); ++i) {
      const std::uint64_t sequence = sequences[i];
      if (sequence < from || sequence > index.sequences) fail(first + i);
      if (sequence - from >= count && sequence < index.sequences) break;
      tokens[i] = sequence == index.sequences ? shard.records : megatron_token(shard, pointers + 8 * (sequence - from));
    }
    if (i == before) fail(first + i);
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (tokens[i + 1] < tokens[i]) fail(first + i);
    out[i] = tokens[i + 1] - tokens[i];
  }
}

void read_shard(const Dataset& dataset, const Shard& shard, std::uint64_t first, std::span<std::uint64_t> out,
                const StoreChoice& through) {
  if (dataset.spans == SpanKind::Arrays) {
    const std::vector<std::uint64_t>& starts = shard.arrays->starts;
    for (std::uint64_t i = 0; i < out.size(); ++i) out[i] = starts[first + i + 1] - starts[first + i];
    return;
  }
  if (shard.table != nullptr) {
    for (std::uint64_t i = 0; i < out.size(); ++i) out[i] = shard.table->at(first + i).tokens;
    return;
  }
  const bool compares = dataset.spans == SpanKind::Compact && shard.checks != Checks::None;
  const File side = compares ? shard.index.beside(kIndexCrcName, crc_bytes(shard.index.bytes)) : File();
  BlockReader reader(shard.index, side, through);
  while (!out.empty()) {
    const std::span<std::uint64_t> part = out.first(std::min<std::size_t>(kChunkDocuments, out.size()));
    if (dataset.spans == SpanKind::Compact) {
      read_compact(shard, first, part, reader);
    } else if (dataset.spans == SpanKind::Bounds) {
      read_bounds(shard, first, part, reader);
    } else {
      read_megatron(shard, first, part, reader);
    }
    first += part.size();
    out = out.subspan(part.size());
  }
}

}  // namespace

void check_has_lengths(const Dataset& dataset) {
  check_has_documents(dataset);
  if (dataset.spans == SpanKind::Opaque) {
    raise(ErrorKind::InvalidArgument, "{}: its documents are entries without records: they have no lengths",
          dataset.path);
  }
  if (dataset.spans != SpanKind::Compact) return;
  for (const Shard& shard : dataset.shards) check_compact(shard);
}

void read_document_lengths(const Dataset& dataset, std::uint64_t first, std::span<std::uint64_t> out,
                           const StoreChoice& through) {
  const std::vector<std::uint64_t>& starts = dataset.span_starts;
  const std::uint64_t size = starts.back();
  if (first > size || out.size() > size - first) {
    raise(ErrorKind::InvalidArgument, "documents {} to {} of a dataset of {}", with_commas(first),
          with_commas(first + out.size()), with_commas(size));
  }
  if (out.empty()) return;
  for (std::uint64_t shard = Dataset::shard_of(starts, first); !out.empty(); ++shard) {
    const std::uint64_t part = std::min<std::uint64_t>(out.size(), starts[shard + 1] - first);
    if (part > 0) read_shard(dataset, dataset.shards[shard], first - starts[shard], out.first(part), through);
    out = out.subspan(part);
    first += part;
  }
}

}  // namespace penstock::layout
