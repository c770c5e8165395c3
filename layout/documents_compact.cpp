// Documents of the compact layout: two entries of metadata.index say where records and entry lie. What was read of the
// indexes is kept where they fit (KeptMetadata), so most documents cost their records alone.
#include "layout/compact_index.h"
#include "layout/documents.h"
#include "layout/kept_blocks.h"
#include "layout/kept_metadata.h"

namespace penstock::layout {
namespace {

class CompactDocumentFinder final : public DocumentFinder {
 public:
  explicit CompactDocumentFinder(const Dataset& dataset) : kept_(dataset.shards, KeptMetadata::Files::Index) {}

  [[nodiscard]] std::shared_ptr<Allowance> keeps() const noexcept override { return kept_.allowance(); }
  bool find(Row& row, const Shard& shard, unsigned round, Parts wanted, Document& document, Reads& out) const override;

 private:
  KeptMetadata kept_;
};

bool CompactDocumentFinder::find(Row& row, const Shard& shard, unsigned round, Parts /*wanted*/, Document& document,
                                 Reads& out) const {
  constexpr std::uint64_t kBytes = sizeof(CompactIndexEntry);
  if (round == 0) {
    auto* const range = row.arena.make<KeptRange>();
    document.search = range;
    range->begin(row, shard.index, kept_.shard(document.shard).index.get(), document.number * kBytes, 2 * kBytes, out);
    if (range->reading) return true;
  }
  KeptRange& index = *static_cast<KeptRange*>(document.search);
  index.end();
  check_span_starts(shard, index.bytes, document.number, document.number + 1);
  index.keep();
  const CompactIndexEntry from = load_span_start(index.bytes, 0);
  const CompactIndexEntry to = load_span_start(index.bytes, 1);
  document.first_record = from.first_record;
  document.records = to.first_record - from.first_record;
  document.entry_begin = from.byte_offset;
  document.entry_bytes = to.byte_offset - from.byte_offset;
  return false;
}

}  // namespace

std::unique_ptr<const DocumentFinder> make_compact_document_finder(const Dataset& dataset) {
  for (const Shard& shard : dataset.shards) check_compact(shard);
  return std::make_unique<CompactDocumentFinder>(dataset);
}

}  // namespace penstock::layout
