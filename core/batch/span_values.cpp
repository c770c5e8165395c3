#include "core/batch/span_values.h"

#include "core/columns/target_column.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <tuple>
#include <unordered_map>

namespace penstock {
namespace {

using Entry = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>;  // source, shard, number there

struct EntryHash {
  std::size_t operator()(const Entry& entry) const noexcept {
    const auto& [source, shard, number] = entry;
    return std::hash<std::uint64_t>()(number * 0x9e3779b97f4a7c15U + (std::uint64_t{source} << 32U) + shard);
  }
};

// Calls visit(row number, row, its spans' entries) for each valid row.
template <typename Visit>
void each_row(const Batch& batch, const EntryNumbers& entries, const Visit& visit) {
  const std::span<const std::uint32_t> all = entries.of_span;
  std::size_t first = 0;
  for (std::uint64_t i = 0; i < batch.plan.valid; ++i) {
    const std::size_t count = batch.rows[i].spans.size();
    visit(i, batch.rows[i], all.subspan(first, count));
    first += count;
  }
}

void check_entries(const Batch& batch, const EntryNumbers& entries, std::uint64_t count) {
  std::uint64_t spans = 0;
  for (std::uint64_t i = 0; i < batch.plan.valid; ++i) spans += batch.rows[i].spans.size();
  const auto beyond = [&](std::uint32_t entry) { return entry >= count; };
  if (entries.of_span.size() == spans && std::none_of(entries.of_span.begin(), entries.of_span.end(), beyond)) return;
  raise(ErrorKind::InvalidArgument, "entries of {} spans and values of {}: the batch has {} spans",
        entries.of_span.size(), count, spans);
}

template <typename Spec>
const Spec& spec_of(const Batch& batch, std::size_t number) {
  const auto& specs = batch.format->specs;
  const Spec* const spec = number < specs.size() ? std::get_if<Spec>(&specs[number]) : nullptr;
  if (spec == nullptr) raise(ErrorKind::InvalidArgument, "column {} takes no values of spans", number);
  return *spec;
}

// Of arrays of such a column.
template <typename Spec>
RecordArray places_of(const Batch& batch, const Spec& spec) {
  return {batch.format->source->info(), spec.shorten, spec.padding};
}

// Of row i, or of its slice, in such arrays.
RecordArray::Place place_of(const Batch& batch, const RecordArray& places, const BatchShape& shape, std::uint64_t i) {
  const RowSlice* const slice = batch.row_format(i).slice.get();
  if (slice == nullptr) return places.row(shape, i);
  return {i * slice->records(), slice->records(), 0};
}

template <typename T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

}  // namespace

EntryNumbers number_entries(const Batch& batch) {
  EntryNumbers entries;
  std::unordered_map<Entry, std::uint32_t, EntryHash> known;
  for (std::uint64_t i = 0; i < batch.plan.valid; ++i) {
    for (const Span& span : batch.rows[i].spans) {
      const auto [found, is_new] = known.try_emplace({batch.picks[i].source, span.shard, span.entry},
                                                     static_cast<std::uint32_t>(entries.first_span.size()));
      if (is_new) entries.first_span.push_back(entries.of_span.size());
      entries.of_span.push_back(found->second);
    }
  }
  return entries;
}

void spread_values(Batch& batch, std::size_t number, const EntryNumbers& entries, std::span<const std::byte> values) {
  const auto& spec = spec_of<PerSpanSpec>(batch, number);
  check_entries(batch, entries, values.size() / spec.type.bytes);
  std::byte* const out = batch.slab.data() + batch.arrays.at(number).at;
  const RecordArray places = places_of(batch, spec);
  const BatchShape shape = batch.shape();
  with_unsigned(spec.type.bytes, [&]<typename T>(T) {
    each_row(batch, entries, [&](std::uint64_t i, const Row& row, std::span<const std::uint32_t> of_span) {
      const RecordArray::Place place = place_of(batch, places, shape, i);
      const RowSlice* const slice = batch.row_format(i).slice.get();
      T* const row_out = reinterpret_cast<T*>(out) + place.begin;
      const std::uint64_t count = row.length - spec.shorten;
      std::vector<T> whole(slice == nullptr ? 0 : count);
      T* const to = slice == nullptr ? row_out : whole.data();
      std::uint64_t done = 0;
      for (std::size_t s = 0; s < of_span.size(); ++s) {
        const std::uint64_t start = place.lead + std::min(row.spans[s].start, count);
        const std::uint64_t stop = place.lead + std::min(row.spans[s].stop, count);
        if (start > done) std::fill(to + done, to + start, static_cast<T>(spec.fill));
        std::fill(to + start, to + stop, load<T>(values.data() + of_span[s] * sizeof(T)));
        done = std::max(done, stop);
      }
      std::fill(to + done, to + (slice == nullptr ? place.length : count), static_cast<T>(spec.fill));
      if (slice == nullptr) return;
      slice->for_each(row.spans, [&, at = row_out](std::uint64_t begin, std::uint64_t end) mutable {
        at = std::copy(to + begin, to + end, at);
      });
    });
  });
}

void keep_targets(Batch& batch, std::size_t number, const EntryNumbers& entries, std::span<const std::uint64_t> firsts,
                  std::span<const DocumentRange> ranges) {
  const auto& spec = spec_of<TargetSpec>(batch, number);
  check_entries(batch, entries, firsts.empty() ? 0 : firsts.size() - 1);
  const PlacedArray& placed = batch.arrays.at(number);
  std::byte* const labels = spec.labels ? batch.slab.data() + placed.at : nullptr;
  const std::uint64_t mask_at = spec.labels ? placed.shape.further.at(0).at : 0;
  const RecordArray places = places_of(batch, spec);
  const BatchShape shape = batch.shape();
  std::vector<std::byte> kept;  // of each record of a row and of its lookahead, whether it counts as a target
  each_row(batch, entries, [&](std::uint64_t i, const Row& row, std::span<const std::uint32_t> of_span) {
    kept.assign(row.length + 1, std::byte{0});  // the last record of a row without lookahead has no target
    for (std::size_t s = 0; s < of_span.size(); ++s) {
      const Span& span = row.spans[s];
      if (span.start == span.stop) continue;
      if (span.offset < 0) {
        raise(ErrorKind::InvalidArgument, "loss_mask: these spans do not say where in their documents they begin");
      }
      const auto offset = static_cast<std::uint64_t>(span.offset);
      const std::uint64_t end = offset + (span.stop - span.start);
      for (std::uint64_t r = firsts[of_span[s]]; r < firsts[of_span[s] + 1]; ++r) {
        const std::uint64_t from = std::clamp(ranges[r].begin, offset, end);
        const std::uint64_t to = std::clamp(ranges[r].end, from, end);
        std::memset(kept.data() + span.start + (from - offset), 1, to - from);
      }
    }
    const RowSlice* const slice = batch.row_format(i).slice.get();
    const RecordArray::Place place = place_of(batch, places, shape, i);
    const std::uint64_t count = slice == nullptr ? row.length - spec.shorten : place.length;
    const std::uint64_t begin = place.begin + place.lead;
    std::byte* const mask = batch.slab.data() + placed.at + mask_at + begin;
    auto keep = [&, at = mask](std::uint64_t from, std::uint64_t to) mutable {
      for (std::uint64_t k = from; k < to; ++k) *at++ &= kept[k + 1];
    };
    if (slice == nullptr) {
      keep(0, count);
    } else {
      slice->for_each(row.spans, keep);
    }
    if (labels != nullptr) {
      ignore_labels(labels + begin * spec.labels->type.bytes, spec.labels->type.bytes, mask, count);
    }
  });
}

}  // namespace penstock
