// Opaque documents, entries without records: metadata.index (u64 byte offsets) -> metadata.bin.
#include "core/base/checked.h"
#include "layout/dataset/format.h"
#include "layout/documents/documents.h"
#include "layout/documents/opaque_entries.h"
#include "layout/reading/reads.h"

namespace penstock::layout {
namespace {

class OpaqueDocumentFinder final : public DocumentFinder {
 public:
  bool find(Row& row, const Shard& shard, unsigned round, Parts wanted, Document& document, Reads& out) const override;
};

bool OpaqueDocumentFinder::find(Row& row, const Shard& shard, unsigned round, Parts wanted, Document& document,
                                Reads& out) const {
  if (!has(wanted, Parts::Entries)) return false;
  if (round == 0) {
    document.index =
        plan_read(row, shard.index, document.number * kOffsetIndexEntryBytes, 2 * kOffsetIndexEntryBytes, out);
    return true;
  }
  const auto begin = load_at<std::uint64_t>(document.index, 0);
  const auto end = load_at<std::uint64_t>(document.index, 1);
  check_opaque_entry(shard, document.number, begin, end);
  document.entry_begin = begin;
  document.entry_bytes = end - begin;
  return false;
}

}  // namespace

std::unique_ptr<const DocumentFinder> make_opaque_document_finder(const Dataset& dataset) {
  for (const Shard& shard : dataset.shards) {
    const std::uint64_t wanted =
        checked_mul(checked_add(shard.spans, 1, "entries"), kOffsetIndexEntryBytes, "metadata.index");
    if (shard.index.bytes == wanted) continue;
    raise(ErrorKind::Corruption, "{}: {} bytes, {} entries want {}", shard.index.path(), with_commas(shard.index.bytes),
          with_commas(shard.spans), with_commas(wanted));
  }
  return std::make_unique<OpaqueDocumentFinder>();
}

}  // namespace penstock::layout
