// Documents of a Megatron dataset: document -> sequences -> bytes of the .bin. An empty document has no sequences.
#include "core/base/error.h"
#include "layout/documents.h"
#include "layout/megatron.h"
#include "layout/reads.h"

namespace penstock::layout {
namespace {

class MegatronDocuments final : public Documents {
 public:
  using Documents::Documents;
  bool plan(Row& row, unsigned stage, Reads& out) const override;
  void spans(Row& row) const override { append_span(row, static_cast<const State*>(row.state)->place, nullptr, 0); }

 private:
  struct State {
    Place place;
    const std::byte* bounds;  // stage 0: its first sequence and the next document's
    Wanted pointers[2];       // stage 1: of both
    std::uint64_t first;      // stage 2: its first token
  };
  void plan_bounds(Row& row, Reads& out) const;
  void plan_pointers(Row& row, State& state, Reads& out) const;
  void measure(Row& row, State& state) const;
};

bool MegatronDocuments::plan(Row& row, unsigned stage, Reads& out) const {
  if (stage == 0) {
    plan_bounds(row, out);
    return true;
  }
  State& state = *static_cast<State*>(row.state);
  if (stage == 1) plan_pointers(row, state, out);
  if (stage == 2) measure(row, state);
  if (stage == 3) plan_records(row, shard(state.place), state.first, out);
  return stage < 3;
}

void MegatronDocuments::plan_bounds(Row& row, Reads& out) const {
  const Place at = place(row.index);
  const std::uint64_t offset = shard(at).megatron->documents_offset + 8 * at.number;
  auto* state = row.arena.make<State>();
  state->place = at;
  state->bounds = plan_read(row, shard(at).index, offset, 16, out);
  row.state = state;
}

void MegatronDocuments::plan_pointers(Row& row, State& state, Reads& out) const {
  const Shard& shard = this->shard(state.place);
  const auto first = load_at<std::uint64_t>(state.bounds, 0);
  const auto stop = load_at<std::uint64_t>(state.bounds, 1);
  if (stop < first || stop > shard.megatron->sequences) {
    raise(ErrorKind::Corruption, "{}: document {} is sequences {} to {}: the file changed after it was opened",
          shard.index.path(), state.place.number, first, stop);
  }
  const std::uint64_t array = shard.megatron->pointers_offset;
  // The end of the last sequence is the stream's: it has no pointer.
  const std::uint64_t count = (first < shard.megatron->sequences ? 1 : 0) + (stop < shard.megatron->sequences ? 1 : 0);
  state.pointers[0] = {array + 8 * first, array + 8 * first + 8, nullptr};
  state.pointers[1] = {array + 8 * stop, array + 8 * stop + 8, nullptr};
  plan_merged(row, shard.index, std::span(state.pointers).first(count), out);
}

void MegatronDocuments::measure(Row& row, State& state) const {
  const Shard& shard = this->shard(state.place);
  const auto token = [&](const Wanted& pointer) {
    return pointer.bytes == nullptr ? shard.records : megatron_token(shard, pointer.bytes);
  };
  state.first = token(state.pointers[0]);
  const std::uint64_t stop = token(state.pointers[1]);
  if (stop < state.first) {
    raise(ErrorKind::Corruption, "{}: document {} ends before it begins: the file changed after it was opened",
          shard.index.path(), state.place.number);
  }
  row.length = stop - state.first;
  row.measured = true;
}

}  // namespace

std::shared_ptr<const Source> make_megatron_documents(DatasetPtr dataset) {
  return std::make_shared<MegatronDocuments>(std::move(dataset));
}

}  // namespace penstock::layout
