// Documents of the compact layout: two entries of metadata.index say where records and entry lie.
#include "layout/compact_index.h"
#include "layout/documents.h"

namespace penstock::layout {
namespace {

class CompactDocumentFinder final : public DocumentFinder {
 public:
  bool find(Row& row, const Shard& shard, unsigned round, Parts wanted, Document& document, Reads& out) const override;
};

bool CompactDocumentFinder::find(Row& row, const Shard& shard, unsigned round, Parts /*wanted*/, Document& document,
                                 Reads& out) const {
  constexpr std::uint64_t kBytes = sizeof(CompactIndexEntry);
  if (round == 0) {
    document.index = plan_read(row, shard.index, document.number * kBytes, 2 * kBytes, out);
    return true;
  }
  check_span_starts(shard, document.index, document.number, document.number + 1);
  const CompactIndexEntry from = load_span_start(document.index, 0);
  const CompactIndexEntry to = load_span_start(document.index, 1);
  document.first_record = from.first_record;
  document.records = to.first_record - from.first_record;
  document.entry_begin = from.byte_offset;
  document.entry_bytes = to.byte_offset - from.byte_offset;
  return false;
}

}  // namespace

std::unique_ptr<const DocumentFinder> make_compact_document_finder(const Dataset& dataset) {
  for (const Shard& shard : dataset.shards) check_compact(shard);
  return std::make_unique<CompactDocumentFinder>();
}

}  // namespace penstock::layout
