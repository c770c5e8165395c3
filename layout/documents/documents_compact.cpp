// Documents of the compact layout: two entries of metadata.index say where records and entry lie. What was read of the
// indexes is kept where they fit (KeptMetadata), so most documents cost their records alone.
#include "layout/documents/documents.h"
#include "layout/reading/compact_index.h"
#include "layout/reading/kept_blocks.h"
#include "layout/reading/kept_metadata.h"

#include <array>

namespace penstock::layout {
namespace {

class CompactDocumentFinder final : public DocumentFinder {
 public:
  explicit CompactDocumentFinder(const Dataset& dataset) : kept_(dataset.shards, KeptMetadata::Files::Index) {}

  [[nodiscard]] std::shared_ptr<Allowance> keeps() const noexcept override { return kept_.allowance(); }
  void expect(const Document& document) const override;
  bool find(Row& row, const Shard& shard, unsigned round, Parts wanted, Document& document, Reads& out) const override;

 private:
  static constexpr std::uint64_t kBytes = sizeof(CompactIndexEntry);

  KeptMetadata kept_;
};

void CompactDocumentFinder::expect(const Document& document) const {
  const std::unique_ptr<KeptBlocks>& index = kept_.shard(document.shard).index;
  if (index) index->prefetch(document.number * kBytes);
}

// Two entries of the index, untrusted.
void place(const Shard& shard, const std::byte* index, Document& document) {
  check_span_starts(shard, index, document.number, document.number + 1);
  const CompactIndexEntry from = load_span_start(index, 0);
  const CompactIndexEntry to = load_span_start(index, 1);
  document.first_record = from.first_record;
  document.records = to.first_record - from.first_record;
  document.entry_begin = from.byte_offset;
  document.entry_bytes = to.byte_offset - from.byte_offset;
}

bool CompactDocumentFinder::find(Row& row, const Shard& shard, unsigned round, Parts /*wanted*/, Document& document,
                                 Reads& out) const {
  if (document.search == nullptr) {
    const std::uint64_t offset = document.number * kBytes;
    KeptBlocks* const kept = kept_.shard(document.shard).index.get();
    check_inside(shard.index, offset, 2 * kBytes);
    std::array<std::byte, 2 * kBytes> room;
    const std::byte* const index = kept == nullptr ? nullptr : kept->find(offset, room.size(), room.data());
    if (index != nullptr) {
      place(shard, index, document);
      return false;
    }
    // Neighbours of a fetch lie in one block: one of them reads it, and the others find it in the next round.
    if (round == 0 && kept != nullptr && kept->is_expected(offset, room.size(), row.group)) return true;
    auto* const range = row.arena.make<KeptRange>();
    document.search = range;
    range->begin(row, shard.index, kept, offset, 2 * kBytes, out);
    if (range->reading) return true;
  }
  KeptRange& index = *static_cast<KeptRange*>(document.search);
  index.end();
  place(shard, index.bytes, document);
  index.keep();
  return false;
}

}  // namespace

std::unique_ptr<const DocumentFinder> make_compact_document_finder(const Dataset& dataset) {
  for (const Shard& shard : dataset.shards) check_compact(shard);
  return std::make_unique<CompactDocumentFinder>(dataset);
}

}  // namespace penstock::layout
