// Documents of a foreign file that says where each begins (DocumentBounds), or of which a table in memory does.
#include "layout/documents/document_bounds.h"
#include "layout/documents/document_table.h"
#include "layout/documents/documents.h"
#include "layout/reading/reads.h"

#include <array>

namespace penstock::layout {
namespace {

class BoundsDocumentFinder final : public DocumentFinder {
 public:
  bool find(Row& row, const Shard& shard, unsigned round, Parts wanted, Document& document, Reads& out) const override;
};

bool BoundsDocumentFinder::find(Row& row, const Shard& shard, unsigned round, Parts /*wanted*/, Document& document,
                                Reads& out) const {
  if (shard.table) {
    const DocumentTable::Document found = shard.table->at(document.number);
    document.first_record = found.token;
    document.records = found.tokens;
    return false;
  }
  if (round == 0) {
    const DocumentBounds::Place place = shard.bounds->place(document.number, document.number + 1);
    document.index = plan_read(row, shard.index, place.offset, place.bytes, out);
    return true;
  }
  std::array<std::uint64_t, 2> starts{};
  shard.bounds->starts(shard, document.number, document.index, starts);
  document.first_record = starts[0];
  document.records = starts[1] - starts[0];
  return false;
}

}  // namespace

std::unique_ptr<const DocumentFinder> make_bounds_document_finder() {
  return std::make_unique<BoundsDocumentFinder>();
}

}  // namespace penstock::layout
