// Documents of a Megatron dataset: document -> sequences -> bytes of the .bin. An empty document has no sequences, and
// none has an entry.
#include "core/base/error.h"
#include "layout/documents/documents.h"
#include "layout/foreign/megatron.h"
#include "layout/reading/reads.h"

namespace penstock::layout {
namespace {

class MegatronDocumentFinder final : public DocumentFinder {
 public:
  bool find(Row& row, const Shard& shard, unsigned round, Parts wanted, Document& document, Reads& out) const override;
};

// Where its first sequence and the next document's begin; `index` has their numbers.
void plan_pointers(Row& row, const Shard& shard, Document& document, Reads& out) {
  const auto first = load_at<std::uint64_t>(document.index, 0);
  const auto stop = load_at<std::uint64_t>(document.index, 1);
  if (stop < first || stop > shard.megatron->sequences) {
    raise(ErrorKind::Corruption, "{}: document {} is sequences {} to {}: the file changed after it was opened",
          shard.index.path(), document.number, first, stop);
  }
  const std::uint64_t array = shard.megatron->pointers_offset;
  // The end of the last sequence is the stream's: it has no pointer.
  const std::uint64_t count = (first < shard.megatron->sequences ? 1 : 0) + (stop < shard.megatron->sequences ? 1 : 0);
  auto* pointers = row.arena.make_array<Wanted>(2);
  pointers[0] = {array + 8 * first, array + 8 * first + 8, nullptr};
  pointers[1] = {array + 8 * stop, array + 8 * stop + 8, nullptr};
  plan_merged(row, shard.index, std::span(pointers, count), out);
  document.search = pointers;
}

void measure(const Shard& shard, Document& document) {
  const auto token = [&](const Wanted& pointer) {
    return pointer.bytes == nullptr ? shard.records : megatron_token(shard, pointer.bytes);
  };
  const auto* pointers = static_cast<const Wanted*>(document.search);
  document.first_record = token(pointers[0]);
  const std::uint64_t stop = token(pointers[1]);
  if (stop < document.first_record) {
    raise(ErrorKind::Corruption, "{}: document {} ends before it begins: the file changed after it was opened",
          shard.index.path(), document.number);
  }
  document.records = stop - document.first_record;
}

bool MegatronDocumentFinder::find(Row& row, const Shard& shard, unsigned round, Parts /*wanted*/, Document& document,
                                  Reads& out) const {
  if (round == 0) {
    document.index = plan_read(row, shard.index, shard.megatron->documents_offset + 8 * document.number, 16, out);
  }
  if (round == 1) plan_pointers(row, shard, document, out);
  if (round == 2) measure(shard, document);
  return round < 2;
}

}  // namespace

std::unique_ptr<const DocumentFinder> make_megatron_document_finder() {
  return std::make_unique<MegatronDocumentFinder>();
}

}  // namespace penstock::layout
