#include "layout/documents/documents.h"

#include "core/base/error.h"
#include "layout/foreign/field_arrays.h"
#include "layout/reading/checks.h"
#include "layout/reading/reads.h"
#include "layout/values/with_columns.h"
#include "layout/windows/pieces.h"

#include <algorithm>
#include <utility>

namespace penstock::layout {
namespace {

Document document_at(const std::vector<std::uint64_t>& span_starts, std::uint64_t index) {
  Document document;
  document.shard = Dataset::shard_of(span_starts, index);
  document.number = index - span_starts[document.shard];
  return document;
}

}  // namespace

std::unique_ptr<const DocumentFinder> make_document_finder(const Dataset& dataset) {
  switch (dataset.spans) {
    case SpanKind::Compact: return make_compact_document_finder(dataset);
    case SpanKind::Opaque: return make_opaque_document_finder(dataset);
    case SpanKind::Bounds: return make_bounds_document_finder();
    default: return make_megatron_document_finder();
  }
}

void check_has_documents(const Dataset& dataset) {
  if (dataset.spans == SpanKind::Ids) {
    raise(ErrorKind::InvalidArgument,
          "{}: spans of the ids layout may repeat and interleave, so they are no documents: read it in windows, or "
          "`penstock convert --layout compact` it",
          dataset.path);
  }
  if (dataset.spans == SpanKind::None) {
    raise(ErrorKind::InvalidArgument,
          "{}: a token stream has no documents: read it in windows, or say with end_of_document= or begin_of_document= "
          "which token tells them; a dataset has documents if it is written with metadata or boundaries",
          dataset.path);
  }
  if (dataset.span_count() == 0) raise(ErrorKind::InvalidArgument, "{}: it has no documents", dataset.path);
}

Documents::Documents(DatasetPtr dataset, const DocumentLimit& limit) : dataset_(std::move(dataset)), limit_(limit) {
  check_has_documents(*dataset_);
  finder_ = make_document_finder(*dataset_);
  info_ = info_of(*dataset_, dataset_->span_count());
  info_.shape.ragged = true;
  info_.keeps = finder_->keeps();
  info_.identity.view = fmt::format(R"({{{}"kind":"documents"}})", dataset_->token_rule);
}

bool Documents::plan(Row& row, unsigned round, Parts wanted, Reads& out) const {
  if (round == 0) row.state = row.arena.make<Document>(document_at(dataset_->span_starts, row.index));
  Document& document = *static_cast<Document*>(row.state);
  const Shard& shard = dataset_->shards[document.shard];
  if (!row.measured) {
    if (finder_->find(row, shard, round, wanted, document, out)) return true;
    const std::uint64_t record_bytes = info_.stored_record_bytes;
    row.length = std::min(document.records, limit_.most_records);
    if (limit_.refuse && row.length < document.records) {
      raise(ErrorKind::InvalidArgument, "{}: document {} has {} records, at most {} are wanted", dataset_->path,
            with_commas(row.index), with_commas(document.records), with_commas(limit_.most_records));
    }
    check_records_fit(row, shard.stream, shard.stream_offset + document.first_record * record_bytes,
                      row.length * record_bytes);
    row.measured = true;
    return true;
  }
  if (has(wanted, Parts::Records)) {
    plan_stream(*dataset_, shard, document.first_record, row.length, {row.records, 0, row.length}, out);
  }
  if (has(wanted, Parts::Entries)) {
    document.raw = plan_read(row, shard.data, document.entry_begin, document.entry_bytes, out);
  }
  return false;
}

// One span: all that was read of the document.
void Documents::spans(const Row& row, SpanTable& out) const {
  const Document& document = *static_cast<const Document*>(row.state);
  const std::uint64_t raw_bytes = document.raw == nullptr ? 0 : document.entry_bytes;
  out.push_back({0, row.length, true, row.length == document.records, 0, static_cast<std::uint32_t>(document.shard),
                 document.number, document.raw, raw_bytes});
}

std::int64_t Documents::first_record(const Row& row, std::uint64_t /*index*/) const {
  if (info_.stored_record_bytes == 0) return -1;  // opaque
  const Document& document = *static_cast<const Document*>(row.state);
  return static_cast<std::int64_t>(dataset_->record_starts[document.shard] + document.first_record);
}

Source::Place Documents::place_of(std::uint64_t index) const {
  const Document document = document_at(dataset_->span_starts, index);
  return {dataset_->shards[document.shard].stream.path(), document.number};
}

std::shared_ptr<const Source> make_documents(const DatasetPtr& dataset, const std::vector<std::string>& columns,
                                             const DocumentLimit& limit) {
  if (dataset->spans == SpanKind::Arrays) return with_columns(dataset, make_array_documents(dataset), columns);
  return checked(dataset, with_columns(dataset, std::make_shared<Documents>(dataset, limit), columns));
}

}  // namespace penstock::layout
