#include "core/columns/span_corruption.h"

#include "core/base/align.h"
#include "core/base/checked.h"
#include "core/base/error.h"
#include "core/columns/leaf_column.h"
#include "core/columns/row_draws.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <utility>

namespace penstock {
namespace {

constexpr ErrorKind kCorruptionKind = ErrorKind::InvalidArgument;
constexpr ScalarType kAttention{'i', 8};
constexpr std::uint64_t kCorruptionPurpose = 0x7370616e;  // "span"

// How many tokens of a row are cut out, and in how many spans.
struct Noise {
  std::uint64_t tokens = 0;
  std::uint64_t spans = 0;
};

// The calling thread's, for the row that it corrupts.
struct CorruptionScratch {
  std::vector<std::byte> tokens;
  std::vector<std::uint64_t> noise;  // lengths of the spans …
  std::vector<std::uint64_t> stays;  // … and of what stays before each
  std::vector<std::uint64_t> chosen;
};

CorruptionScratch& corruption_scratch() {
  thread_local CorruptionScratch scratch;
  return scratch;
}

// Parts `items` into as many lengths above 0 as `out` has, all ways alike. Of the items - 1 places between two, the
// cuts (or where they are more than half, the others) are drawn until enough are distinct: any such set is as likely.
void part(std::uint64_t items, RowDraws& draws, std::vector<std::uint64_t>& chosen, std::vector<std::uint64_t>& out) {
  constexpr std::uint64_t kBits = 64;
  const std::uint64_t places = items - 1;
  const std::uint64_t cuts = out.size() - 1;
  const bool inverts = cuts > places - cuts;
  chosen.assign(places / kBits + 1, 0);
  for (std::uint64_t left = inverts ? places - cuts : cuts; left > 0;) {
    const std::uint64_t place = draws.below(places);
    const std::uint64_t bit = std::uint64_t{1} << (place % kBits);
    left -= (chosen[place / kBits] & bit) == 0 ? 1 : 0;
    chosen[place / kBits] |= bit;
  }
  std::uint64_t begin = 0;
  std::size_t next = 0;
  for (std::size_t word = 0; next < cuts; ++word) {
    for (std::uint64_t bits = inverts ? ~chosen[word] : chosen[word]; bits != 0 && next < cuts; bits &= bits - 1) {
      const std::uint64_t end = word * kBits + static_cast<std::uint64_t>(std::countr_zero(bits)) + 1;
      out[next++] = end - begin;
      begin = end;
    }
  }
  out[next] = items - begin;
}

// Writes values of one integer type, one after the other.
class Typed {
 public:
  Typed(std::byte* out, std::uint32_t item_bytes) : out_(out), item_bytes_(item_bytes) {}
  void copy(const std::byte* from, std::uint64_t count) {
    if (count > 0) std::memcpy(out_, from, count * item_bytes_);
    out_ += count * item_bytes_;
  }
  void put(std::int64_t value) {  // little-endian: the low bytes come first
    std::memcpy(out_, &value, item_bytes_);
    out_ += item_bytes_;
  }
  void fill_to(const std::byte* end, std::int64_t value) {
    while (out_ != end) put(value);
  }

 private:
  std::byte* out_;
  std::uint32_t item_bytes_;
};

class SpanCorruptionColumn final : public Column {
 public:
  SpanCorruptionColumn(std::shared_ptr<const SpanCorruptionSpec> spec, const SourceInfo& source)
      : spec_(std::move(spec)),
        tokens_({"inputs", spec_->field, spec_->type}, source, false),
        fixed_length_(source.shape.ragged ? 0 : source.shape.length) {
    const Leaf& leaf = find_leaf(source, spec_->field);
    if (!leaf.is_integer() || !leaf.dims.empty()) {
      raise(kCorruptionKind, "SpanCorruption: field {} holds no single integer a record", leaf.name);
    }
    if (source.packed_multiple > 0) {
      raise(kCorruptionKind, "SpanCorruption: {}: packed rows are several documents: use windows or documents",
            source.path);
    }
    const std::uint64_t wanted = spans_of(noise_of(fixed_length_), fixed_length_, UINT64_MAX);
    if (wanted > spec_->sentinels.size()) {
      raise(kCorruptionKind, "SpanCorruption: {} sentinels for {} spans of a window of {}",
            with_commas(spec_->sentinels.size()), with_commas(wanted), with_commas(fixed_length_));
    }
  }

  [[nodiscard]] ArrayShape shape(const BatchShape& batch) const override {
    const Places places = places_in(batch);
    return {.type = spec_->type,
            .dims = {batch.rows, places.inputs},
            .bytes = checked_add(places.mask_at, bytes_of(batch.rows, places.inputs, kAttention.bytes),
                                 "bytes of a column", kCorruptionKind),
            .further = {{spec_->type, {batch.rows, places.labels}, places.labels_at},
                        {kAttention, {batch.rows, places.inputs}, places.mask_at}}};
  }

  void fill_row(const Row& row, const BatchShape& batch, std::byte* out) const override {
    CorruptionScratch& scratch = corruption_scratch();
    const std::uint32_t item_bytes = spec_->type.bytes;
    scratch.tokens.resize(std::max<std::uint64_t>(scratch.tokens.size(), row.length * item_bytes));
    tokens_.cast(row, 0, row.length, scratch.tokens.data());
    const Noise noise = noise_in(row.length);
    scratch.noise.assign(noise.spans, 0);
    scratch.stays.assign(noise.spans, 0);
    if (noise.spans > 0) {
      RowDraws draws(spec_->seed, row, kCorruptionPurpose);
      part(noise.tokens, draws, scratch.chosen, scratch.noise);
      part(row.length - noise.tokens, draws, scratch.chosen, scratch.stays);
    }
    const Places places = places_in(batch);
    std::byte* const first_input = out + row.number * places.inputs * item_bytes;
    std::byte* const first_label = out + places.labels_at + row.number * places.labels * item_bytes;
    Typed inputs(first_input, item_bytes);
    Typed labels(first_label, item_bytes);
    const std::byte* at = scratch.tokens.data();
    for (std::size_t i = 0; i < noise.spans; ++i) {
      inputs.copy(at, scratch.stays[i]);
      at += scratch.stays[i] * item_bytes;
      inputs.put(spec_->sentinels[i]);
      labels.put(spec_->sentinels[i]);
      labels.copy(at, scratch.noise[i]);
      at += scratch.noise[i] * item_bytes;
    }
    if (noise.spans == 0) inputs.copy(at, row.length);
    if (spec_->end) inputs.put(*spec_->end);
    if (spec_->end) labels.put(*spec_->end);
    inputs.fill_to(first_input + places.inputs * item_bytes, spec_->pad);
    const std::uint64_t given = labels_in(row.length);
    fill_ignored_labels(first_label + given * item_bytes, places.labels - given, item_bytes);
    auto* const mask = reinterpret_cast<std::int64_t*>(out + places.mask_at) + row.number * places.inputs;
    std::fill_n(mask, inputs_in(row.length), 1);
    std::fill(mask + inputs_in(row.length), mask + places.inputs, 0);
  }

  void fill_padding(const BatchShape& batch, std::byte* out) const override {
    const Places places = places_in(batch);
    const std::uint64_t rows = batch.rows - batch.valid;
    std::byte* const inputs = out + batch.valid * places.inputs * spec_->type.bytes;
    Typed(inputs, spec_->type.bytes).fill_to(inputs + rows * places.inputs * spec_->type.bytes, spec_->pad);
    fill_ignored_labels(out + places.labels_at + batch.valid * places.labels * spec_->type.bytes, rows * places.labels,
                        spec_->type.bytes);
    std::fill_n(reinterpret_cast<std::int64_t*>(out + places.mask_at) + batch.valid * places.inputs,
                rows * places.inputs, 0);
  }

 private:
  // Values of a row, and where the arrays behind the first begin.
  struct Places {
    std::uint64_t inputs = 0;
    std::uint64_t labels = 0;
    std::uint64_t labels_at = 0;
    std::uint64_t mask_at = 0;
  };

  [[nodiscard]] std::uint64_t noise_of(std::uint64_t length) const {
    if (length < 2) return 0;
    const double wanted = std::nearbyint(static_cast<double>(length) * spec_->density);
    return std::clamp<std::uint64_t>(static_cast<std::uint64_t>(wanted), 1, length - 1);
  }
  [[nodiscard]] std::uint64_t spans_of(std::uint64_t noise, std::uint64_t length, std::uint64_t most) const {
    if (noise == 0) return 0;
    const double wanted = std::nearbyint(static_cast<double>(noise) / spec_->mean_length);
    return std::clamp<std::uint64_t>(static_cast<std::uint64_t>(wanted), 1, std::min({noise, length - noise, most}));
  }
  [[nodiscard]] Noise noise_in(std::uint64_t length) const {
    const std::uint64_t noise = noise_of(length);
    return {noise, spans_of(noise, length, spec_->sentinels.size())};
  }
  // Neither falls where a row is longer.
  [[nodiscard]] std::uint64_t inputs_in(std::uint64_t length) const {
    const Noise noise = noise_in(length);
    return length - noise.tokens + noise.spans + (spec_->end ? 1 : 0);
  }
  [[nodiscard]] std::uint64_t labels_in(std::uint64_t length) const {
    const Noise noise = noise_in(length);
    return noise.tokens + noise.spans + (spec_->end ? 1 : 0);
  }

  static std::uint64_t bytes_of(std::uint64_t rows, std::uint64_t length, std::uint32_t item_bytes) {
    const std::uint64_t values = checked_mul(rows, length, "values of a column", kCorruptionKind);
    return checked_mul(values, item_bytes, "bytes of a column", kCorruptionKind);
  }
  [[nodiscard]] Places places_in(const BatchShape& batch) const {
    const std::uint64_t length = batch.ragged ? batch.longest : batch.row_records;
    Places places{.inputs = inputs_in(length), .labels = labels_in(length)};
    const auto after = [](std::uint64_t at, std::uint64_t bytes) {
      return align_up(checked_add(at, checked_add(bytes, kCacheLine, "bytes of a column", kCorruptionKind),
                                  "bytes of a column", kCorruptionKind) -
                          kCacheLine,
                      kCacheLine);
    };
    places.labels_at = after(0, bytes_of(batch.rows, places.inputs, spec_->type.bytes));
    places.mask_at = after(places.labels_at, bytes_of(batch.rows, places.labels, spec_->type.bytes));
    return places;
  }

  const std::shared_ptr<const SpanCorruptionSpec> spec_;
  const LeafColumn tokens_;
  const std::uint64_t fixed_length_;  // 0: rows are ragged
};

class SpanCorruptionMaker final : public ColumnMaker {
 public:
  explicit SpanCorruptionMaker(SpanCorruptionSpec spec)
      : spec_(std::make_shared<const SpanCorruptionSpec>(std::move(spec))) {
    if (!(spec_->density > 0 && spec_->density < 1)) {
      raise(kCorruptionKind, "SpanCorruption(density={}): must be above 0 and below 1", spec_->density);
    }
    if (!(spec_->mean_length >= 1 && std::isfinite(spec_->mean_length))) {
      raise(kCorruptionKind, "SpanCorruption(mean_length={}): must be at least 1", spec_->mean_length);
    }
    if (spec_->sentinels.empty()) raise(kCorruptionKind, "SpanCorruption: there are no sentinels");
    if (spec_->type.kind != 'i') raise(kCorruptionKind, "SpanCorruption: labels are signed integers");
  }
  [[nodiscard]] std::shared_ptr<const Column> make(const SourceInfo& source) const override {
    return std::make_shared<SpanCorruptionColumn>(spec_, source);
  }
  [[nodiscard]] Parts parts() const noexcept override { return Parts::Records; }

 private:
  const std::shared_ptr<const SpanCorruptionSpec> spec_;
};

}  // namespace

std::shared_ptr<const ColumnMaker> make_span_corruption(SpanCorruptionSpec spec) {
  return std::make_shared<SpanCorruptionMaker>(std::move(spec));
}

}  // namespace penstock
