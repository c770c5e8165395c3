#include "layout/values/with_columns.h"

#include "core/base/error.h"
#include "layout/reading/checks.h"
#include "layout/values/dataset_columns.h"
#include "layout/values/kept_columns.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

namespace penstock::layout {
namespace {

// A value on its way, which was not kept.
struct WantedValue {
  KeptRange range;
  bool is_wanted = false;
};

struct State : RowValues {
  unsigned round = 0;                     // of the base
  bool base_ended = false;                // no round of it follows
  bool planned = false;                   // the values are on their way …
  bool reading = false;                   // … and not at hand yet
  const std::byte** out = nullptr;        // what `at` shows
  std::byte* codes = nullptr;             // of categories, as they are given out: for each value 4 bytes
  const std::uint64_t* shards = nullptr;  // of each document
  WantedValue* wanted = nullptr;          // of each value, if one was not kept
  Span* spans = nullptr;                  // of a window
  std::uint64_t span_count = 0;
};

class WithColumns final : public Source {
 public:
  WithColumns(DatasetPtr dataset, std::shared_ptr<const Source> base, std::vector<std::size_t> columns);

  [[nodiscard]] const SourceInfo& info() const override { return info_; }
  bool plan(Row& row, unsigned round, Parts wanted, Reads& out) const override;
  void spans(const Row& row, SpanTable& out) const override;
  [[nodiscard]] std::uint64_t base_index(std::uint64_t index) const override { return base_->base_index(index); }
  [[nodiscard]] std::int64_t first_record(const Row& row, std::uint64_t index) const override {
    return base_->first_record(row, index);
  }
  [[nodiscard]] Place place_of(std::uint64_t index) const override { return base_->place_of(index); }

 private:
  bool plan_base(Row& row, State& state, Parts wanted, Reads& out) const;
  std::uint64_t* begin(Row& row, State& state, std::uint64_t documents) const;
  void plan_document(Row& row, State& state, Reads& out) const;
  void plan_spans(Row& row, State& state, Reads& out) const;
  void want(Row& row, State& state, std::uint64_t document, std::uint64_t entry, Reads& out) const;
  void give(State& state, std::uint64_t document, std::size_t i, const std::byte* stored) const;
  void take(State& state) const;

  const DatasetPtr dataset_;
  const std::shared_ptr<const Source> base_;
  const std::vector<std::size_t> columns_;  // numbers of the dataset's
  const KeptColumns kept_;
  SourceInfo info_;
};

WithColumns::WithColumns(DatasetPtr dataset, std::shared_ptr<const Source> base, std::vector<std::size_t> columns)
    : dataset_(std::move(dataset)),
      base_(std::move(base)),
      columns_(std::move(columns)),
      kept_(*dataset_, columns_),
      info_(base_->info()) {
  for (const std::size_t column : columns_) info_.values.push_back(dataset_->columns[column]);
  info_.keeps_values = kept_.allowance();
}

bool WithColumns::plan(Row& row, unsigned round, Parts wanted, Reads& out) const {
  if (!has(wanted, Parts::Values)) return base_->plan(row, round, wanted, out);
  if (round == 0) row.values = row.arena.make<State>();
  State& state = *static_cast<State*>(row.values);
  if (state.reading) take(state);
  const bool may_plan = plan_base(row, state, wanted, out);
  if (may_plan && !state.planned) {
    if (info_.shape.ragged) {
      plan_document(row, state, out);
    } else {
      plan_spans(row, state, out);
    }
    state.planned = true;
  }
  return !state.base_ended || !state.planned || state.reading;
}

// Returns whether values may be planned too: a document's unless it was measured just now, which allows no reads; those
// of a window after all of its reads.
bool WithColumns::plan_base(Row& row, State& state, Parts wanted, Reads& out) const {
  if (state.base_ended) return true;
  const bool was_measured = row.measured;
  const Parts its = info_.shape.ragged ? wanted : wanted | Parts::Spans;
  state.base_ended = !base_->plan(row, state.round++, its, out);
  return info_.shape.ragged && row.measured == was_measured;
}

// Returns where the documents' shards are to be noted.
std::uint64_t* WithColumns::begin(Row& row, State& state, std::uint64_t documents) const {
  const std::uint64_t values = documents * columns_.size();
  state.documents = documents;
  std::byte* const memory =
      row.arena.allocate(values * (sizeof(*state.out) + sizeof(std::int32_t)) + documents * sizeof(*state.shards));
  auto* const shards = reinterpret_cast<std::uint64_t*>(memory);
  state.shards = shards;
  state.at = state.out = reinterpret_cast<const std::byte**>(shards + documents);
  state.codes = reinterpret_cast<std::byte*>(state.out + values);
  return shards;
}

void WithColumns::plan_document(Row& row, State& state, Reads& out) const {
  const std::vector<std::uint64_t>& starts = dataset_->column_table->entry_starts();
  const std::uint64_t shard = Dataset::shard_of(starts, row.index);
  *begin(row, state, 1) = shard;
  want(row, state, 0, row.index - starts[shard], out);
}

void WithColumns::plan_spans(Row& row, State& state, Reads& out) const {
  SpanTable found;
  base_->spans(row, found);
  state.span_count = found.size();
  state.spans = row.arena.make_array<Span>(found.size());
  std::copy(found.begin(), found.end(), state.spans);
  std::uint64_t* const shards = begin(row, state, found.size());
  for (std::uint64_t i = 0; i < found.size(); ++i) {
    shards[i] = found[i].shard;
    want(row, state, i, found[i].entry, out);
  }
}

void WithColumns::want(Row& row, State& state, std::uint64_t document, std::uint64_t entry, Reads& out) const {
  const std::uint64_t shard = state.shards[document];
  const File& file = dataset_->shards[shard].columns;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const ColumnPlace& place = dataset_->column_table->place(shard, columns_[i]);
    if (const std::byte* const values = dataset_->column_table->kept(shard, columns_[i])) {
      give(state, document, i, values + entry * place.value_bytes);
      continue;
    }
    const std::uint64_t offset = place.offset + entry * place.value_bytes;
    KeptBlocks* const kept = kept_.of(shard, i);
    const bool in_one_block = offset % KeptBlocks::kBlock + place.value_bytes <= KeptBlocks::kBlock;
    if (kept != nullptr && in_one_block) {
      if (const std::byte* const found = kept->find(offset, place.value_bytes, nullptr)) {
        give(state, document, i, found);
        continue;
      }
    }
    if (state.wanted == nullptr) state.wanted = row.arena.make_array<WantedValue>(state.documents * columns_.size());
    WantedValue& wanted = state.wanted[document * columns_.size() + i];
    wanted.is_wanted = true;
    wanted.range.begin(row, file, kept, offset, place.value_bytes, out);
    state.reading = true;
  }
}

void WithColumns::give(State& state, std::uint64_t document, std::size_t i, const std::byte* stored) const {
  const std::uint64_t value = document * columns_.size() + i;
  state.out[value] = stored;
  if (!info_.values[i].is_category) return;
  std::byte* const code = state.codes + value * sizeof(std::int32_t);
  dataset_->column_table->give(state.shards[document], columns_[i], stored, 1, code);
  state.out[value] = code;
}

void WithColumns::take(State& state) const {
  state.reading = false;
  for (std::uint64_t v = 0; v < state.documents * columns_.size(); ++v) {
    WantedValue& wanted = state.wanted[v];
    if (!wanted.is_wanted) continue;
    wanted.range.end();
    wanted.range.keep();
    give(state, v / columns_.size(), v % columns_.size(), wanted.range.bytes);
  }
}

void WithColumns::spans(const Row& row, SpanTable& out) const {
  const auto* state = static_cast<const State*>(row.values);
  if (state == nullptr || info_.shape.ragged) return base_->spans(row, out);
  out.insert(out.end(), state->spans, state->spans + state->span_count);
}

// Documents of which nothing is read.
class Entries final : public Source {
 public:
  explicit Entries(const Dataset& dataset) : info_(info_of(dataset, dataset.column_table->entry_starts().back())) {
    info_.shape.ragged = true;
    info_.stored_record_bytes = 0;
    info_.schema = {};
    info_.identity.view = R"({"kind":"entries"})";
  }

  [[nodiscard]] const SourceInfo& info() const override { return info_; }
  bool plan(Row& row, unsigned /*round*/, Parts /*wanted*/, Reads& /*out*/) const override {
    if (row.measured) return false;
    row.length = 0;
    return row.measured = true;
  }
  void spans(const Row& /*row*/, SpanTable& /*out*/) const override {}

 private:
  SourceInfo info_;
};

std::vector<std::size_t> find(const Dataset& dataset, const std::vector<std::string>& names) {
  std::vector<std::size_t> columns;
  for (const std::string& name : names) {
    const std::size_t column = dataset.find_column(name);
    if (std::find(columns.begin(), columns.end(), column) != columns.end()) {
      raise(ErrorKind::InvalidArgument, "columns: {} is named twice", excerpt(name));
    }
    columns.push_back(column);
  }
  return columns;
}

}  // namespace

std::shared_ptr<const Source> with_columns(const DatasetPtr& dataset, std::shared_ptr<const Source> source,
                                           const std::vector<std::string>& names) {
  if (names.empty()) return source;
  return std::make_shared<WithColumns>(dataset, std::move(source), find(*dataset, names));
}

std::shared_ptr<const Source> make_values(const DatasetPtr& dataset, const std::vector<std::string>& names) {
  std::vector<std::size_t> columns = find(*dataset, names);
  auto entries = std::make_shared<Entries>(*dataset);
  return checked(dataset, std::make_shared<WithColumns>(dataset, std::move(entries), std::move(columns)));
}

}  // namespace penstock::layout
