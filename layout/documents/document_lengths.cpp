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

// `out` has one place more than there are documents, here and below.
void read_compact(const Shard& shard, std::uint64_t first, std::span<std::uint64_t> out, BlockReader& reader) {
  constexpr std::uint64_t kBytes = sizeof(CompactIndexEntry);
  const std::byte* const entries = reader.read(first * kBytes, out.size() * kBytes).data();
  check_span_starts(shard, entries, first, first + out.size() - 1);
  for (std::uint64_t i = 0; i < out.size(); ++i) out[i] = load_span_start(entries, i).first_record;
}

void read_bounds(const Shard& shard, std::uint64_t first, std::span<std::uint64_t> out, BlockReader& reader) {
  const DocumentBounds::Place place = shard.bounds->place(first, first + out.size() - 1);
  shard.bounds->starts(shard, first, reader.read(place.offset, place.bytes).data(), out);
}

// Where each of the sequences begins, which do not fall, and where the documents that begin there do.
void read_megatron(const Shard& shard, std::uint64_t first, std::span<std::uint64_t> out, BlockReader& reader) {
  const MegatronIndex& index = *shard.megatron;
  const auto fail = [&](std::uint64_t document) {
    raise(ErrorKind::Corruption, "{}: document {} ends before it begins: the file changed after it was opened",
          shard.index.path(), with_commas(document));
  };
  const auto numbers = reader.read(index.documents_offset + 8 * first, 8 * out.size());
  std::vector<std::uint64_t> sequences(out.size());
  std::memcpy(sequences.data(), numbers.data(), numbers.size());
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
      out[i] = sequence == index.sequences ? shard.records : megatron_token(shard, pointers + 8 * (sequence - from));
    }
    if (i == before) fail(first + i);
  }
  for (std::size_t i = 1; i < out.size(); ++i) {
    if (out[i] < out[i - 1]) fail(first + i - 1);
  }
}

void read_shard(const Dataset& dataset, const Shard& shard, std::uint64_t first, std::span<std::uint64_t> out,
                const StoreChoice& through) {
  DocumentStarts reader(dataset, shard, through);
  std::vector<std::uint64_t> starts;
  while (!out.empty()) {
    const std::span<std::uint64_t> part = out.first(std::min<std::size_t>(kChunkDocuments, out.size()));
    starts.resize(part.size() + 1);
    reader.read(first, starts);
    for (std::size_t i = 0; i < part.size(); ++i) part[i] = starts[i + 1] - starts[i];
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

DocumentStarts::DocumentStarts(const Dataset& dataset, const Shard& shard, const StoreChoice& through)
    : dataset_(dataset), shard_(shard) {
  if (dataset.spans == SpanKind::Arrays || shard.table != nullptr) return;
  const bool compares = dataset.spans == SpanKind::Compact && shard.checks != Checks::None;
  reader_.emplace(shard.index, compares ? shard.index.beside(kIndexCrcName, crc_bytes(shard.index.bytes)) : File(),
                  through);
}

void DocumentStarts::read(std::uint64_t first, std::span<std::uint64_t> out) {
  if (dataset_.spans == SpanKind::Arrays) {
    const auto from = shard_.arrays->starts.begin() + static_cast<std::ptrdiff_t>(first);
    std::copy_n(from, out.size(), out.begin());
  } else if (shard_.table != nullptr) {
    std::uint64_t end = 0;
    for (std::uint64_t i = 0; i + 1 < out.size(); ++i) {
      const DocumentTable::Document document = shard_.table->at(first + i);
      out[i] = document.token;
      end = document.token + document.tokens;
    }
    out.back() = end;
  } else if (dataset_.spans == SpanKind::Compact) {
    read_compact(shard_, first, out, *reader_);
  } else if (dataset_.spans == SpanKind::Bounds) {
    read_bounds(shard_, first, out, *reader_);
  } else {
    read_megatron(shard_, first, out, *reader_);
  }
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
