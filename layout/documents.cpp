#include "layout/documents.h"

#include "core/base/checked.h"
#include "layout/format.h"
#include "layout/reads.h"
#include "layout/spans_compact.h"

#include <algorithm>

namespace penstock::layout {
namespace {

constexpr std::uint64_t kOffsetBytes = kOffsetIndexEntryBytes;

class CompactDocuments final : public Documents {
 public:
  explicit CompactDocuments(DatasetPtr dataset) : Documents(std::move(dataset)) {
    for (const Shard& shard : this->dataset().shards) check_compact(shard);
  }
  bool plan(Row& row, unsigned stage, Reads& out) const override;
  void spans(Row& row) const override;

 private:
  struct State {
    Place place;
    const std::byte* index;  // the document's entry and the next
    const std::byte* data;
  };
};

bool CompactDocuments::plan(Row& row, unsigned stage, Reads& out) const {
  if (stage == 0) {
    const Place at = place(row.index);
    const std::byte* index =
        plan_read(row, shard(at).index, at.number * sizeof(CompactIndexEntry), 2 * sizeof(CompactIndexEntry), out);
    row.state = row.arena.make<State>(at, index, nullptr);
    return true;
  }
  State& state = *static_cast<State*>(row.state);
  const Shard& shard = this->shard(state.place);
  const CompactIndexEntry from = load_span_start(state.index, 0);
  const CompactIndexEntry to = load_span_start(state.index, 1);
  if (stage == 1) {
    check_span_starts(shard, state.index, state.place.number, state.place.number + 1);
    row.length = to.first_record - from.first_record;
    row.measured = true;
    return true;
  }
  plan_records(row, shard, from.first_record, out);
  state.data = plan_read(row, shard.data, from.byte_offset, to.byte_offset - from.byte_offset, out);
  return false;
}

void CompactDocuments::spans(Row& row) const {
  const State& state = *static_cast<const State*>(row.state);
  const std::uint64_t bytes = load_span_start(state.index, 1).byte_offset - load_span_start(state.index, 0).byte_offset;
  append_span(row, state.place, state.data, bytes);
}

// Entries without records: metadata.index (u64 byte offsets) -> metadata.bin.
class OpaqueDocuments final : public Documents {
 public:
  explicit OpaqueDocuments(DatasetPtr dataset);
  bool plan(Row& row, unsigned stage, Reads& out) const override;
  void spans(Row& row) const override;

 private:
  struct State {
    Place place;
    const std::byte* index;
    const std::byte* data;
  };
};

OpaqueDocuments::OpaqueDocuments(DatasetPtr dataset) : Documents(std::move(dataset)) {
  for (const Shard& shard : this->dataset().shards) {
    const std::uint64_t wanted = checked_mul(checked_add(shard.spans, 1, "entries"), kOffsetBytes, "metadata.index");
    if (shard.index.bytes == wanted) continue;
    raise(ErrorKind::Corruption, "{}: {} bytes, {} entries want {}", shard.index.path(), with_commas(shard.index.bytes),
          with_commas(shard.spans), with_commas(wanted));
  }
}

bool OpaqueDocuments::plan(Row& row, unsigned stage, Reads& out) const {
  if (stage == 0) {
    const Place at = place(row.index);
    const std::byte* index = plan_read(row, shard(at).index, at.number * kOffsetBytes, 2 * kOffsetBytes, out);
    row.state = row.arena.make<State>(at, index, nullptr);
    row.length = 0;
    return true;
  }
  State& state = *static_cast<State*>(row.state);
  if (stage == 1) {
    row.measured = true;
    return true;
  }
  const Shard& shard = this->shard(state.place);
  const auto begin = load_at<std::uint64_t>(state.index, 0);
  const auto end = load_at<std::uint64_t>(state.index, 1);
  const bool first_wrong = state.place.number == 0 && begin != 0;
  const bool last_wrong = state.place.number + 1 == shard.spans && end != shard.data.bytes;
  if (end < begin || end > shard.data.bytes || first_wrong || last_wrong) {
    raise(ErrorKind::Corruption, "{}: entry {} is bytes {} to {}: not in its place in the {} bytes of {}",
          shard.index.path(), with_commas(state.place.number), with_commas(begin), with_commas(end),
          with_commas(shard.data.bytes), shard.data.path());
  }
  state.data = plan_read(row, shard.data, begin, end - begin, out);
  return false;
}

void OpaqueDocuments::spans(Row& row) const {
  const State& state = *static_cast<const State*>(row.state);
  const std::uint64_t bytes = load_at<std::uint64_t>(state.index, 1) - load_at<std::uint64_t>(state.index, 0);
  append_span(row, state.place, state.data, bytes);
}

}  // namespace

Documents::Documents(DatasetPtr dataset) : dataset_(std::move(dataset)) {
  if (dataset_->span_count() == 0) raise(ErrorKind::InvalidArgument, "{}: it has no documents", dataset_->path);
}

std::uint64_t Documents::record_count() const {
  return stored_record_bytes() == 0 ? dataset_->span_count() : dataset_->record_count();
}

Documents::Place Documents::place(std::uint64_t index) const {
  const std::vector<std::uint64_t>& starts = dataset_->span_starts;
  const std::uint64_t shard = Dataset::shard_of(starts, index);
  return {shard, index - starts[shard]};
}

void Documents::plan_records(const Row& row, const Shard& shard, std::uint64_t first, Reads& out) const {
  const std::uint64_t bytes = stored_record_bytes();
  plan_read(shard.stream, shard.stream_offset + first * bytes, row.length * bytes, row.records, out);
}

void Documents::append_span(Row& row, const Place& place, const std::byte* raw, std::uint64_t raw_bytes) {
  row.spans.push_back(
      {0, row.length, true, true, 0, static_cast<std::uint32_t>(place.shard), place.number, raw, raw_bytes});
}

std::shared_ptr<const Source> make_documents(DatasetPtr dataset) {
  switch (dataset->spans) {
    case SpanKind::Compact: return std::make_shared<CompactDocuments>(std::move(dataset));
    case SpanKind::Opaque: return std::make_shared<OpaqueDocuments>(std::move(dataset));
    case SpanKind::Megatron: return make_megatron_documents(std::move(dataset));
    case SpanKind::Ids:
      raise(ErrorKind::InvalidArgument,
            "{}: spans of the ids layout may repeat and interleave, so they are no documents: read it in windows, or "
            "`penstock convert --layout compact` it",
            dataset->path);
    case SpanKind::None: break;
  }
  raise(ErrorKind::InvalidArgument, "{}: a token stream has no documents: read it in windows", dataset->path);
}

}  // namespace penstock::layout
