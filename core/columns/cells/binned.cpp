#include "core/base/error.h"
#include "core/columns/cells/ranking.h"
#include "core/columns/cells/sentences.h"
#include "core/columns/row_draws.h"

#include <cmath>
#include <utility>

namespace penstock::cells {
namespace {

constexpr ScalarType kToken{'i', 8};
constexpr ScalarType kMask{'b', 1};

// Of the calling thread, for the cell that it bins. Of each gene whose value is above 0:
struct BinScratch {
  std::vector<double> values;
  std::vector<std::int64_t> tokens;
  std::vector<std::int64_t> bins;
  std::vector<char> chosen;
  std::vector<double> edges;
  Ranking ranking;
};

BinScratch& bin_scratch(std::uint64_t records) {
  static thread_local BinScratch scratch;
  if (scratch.values.size() < records) {
    scratch.values.resize(records);
    scratch.tokens.resize(records);
    scratch.bins.resize(records);
    scratch.chosen.resize(records);
  }
  return scratch;
}

// numpy.quantile's linear method, of values that `order` sorts downwards.
double quantile(std::span<const double> values, std::span<const std::uint32_t> order, double at) {
  const std::uint64_t last = values.size() - 1;
  const auto rising = [&](std::uint64_t i) { return values[order[last - i]]; };
  const double place = at * static_cast<double>(last);
  if (place >= static_cast<double>(last)) return rising(last);
  const double whole = std::floor(place);
  const auto below = static_cast<std::uint64_t>(whole);
  const double part = place - whole;
  const double low = rising(below);
  const double high = rising(below + 1);
  const double gap = high - low;
  return part >= 0.5 ? high - gap * (1 - part) : low + gap * part;
}

class BinnedColumn final : public Column {
 public:
  BinnedColumn(CellSpecPtr cells, SentenceSpecPtr sentences, std::shared_ptr<const BinnedSpec> spec,
               const SourceInfo& source)
      : reader_(std::move(cells), source, Values::Finite), sentences_(std::move(sentences)), spec_(std::move(spec)) {
    if (!source.shape.ragged) raise(ErrorKind::InvalidArgument, "cells are documents, not windows");
  }

  [[nodiscard]] ArrayShape shape(const BatchShape& batch) const override {
    const std::uint64_t length = sentences_.spec().length;
    return {.type = kToken,
            .dims = {batch.rows, length},
            .bytes = mask_at(batch) + batch.rows * length,
            .further = {{kToken, {batch.rows, length}, bins_at(batch)}, {kMask, {batch.rows, length}, mask_at(batch)}}};
  }

  void fill_row(const Row& row, const BatchShape& batch, std::byte* out) const override {
    const Cell cell = reader_.read(row);
    BinScratch& scratch = bin_scratch(cell.genes.size());
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < cell.genes.size(); ++i) {
      scratch.values[count] = cell.values[i];
      scratch.tokens[count] = sentences_.token(cell.genes[i]);
      count += cell.values[i] > 0 ? 1 : 0;
    }
    const std::span<const double> values(scratch.values.data(), count);
    const auto order = scratch.ranking.largest(values, count);
    bin(values, order, scratch);
    write(row, choose(row, order, scratch), scratch, batch, out);
  }

  void fill_padding(const BatchShape& batch, std::byte* out) const override {
    sentences_.write_padding(batch, out, out + mask_at(batch));
    std::byte* const bins = out + bins_at(batch);
    std::fill(sentences_.row_of(bins, batch.valid), sentences_.row_of(bins, batch.rows), spec_->pad_value);
  }

 private:
  [[nodiscard]] std::uint64_t bins_at(const BatchShape& batch) const { return sentences_.bytes(batch, 1); }
  [[nodiscard]] std::uint64_t mask_at(const BatchShape& batch) const { return sentences_.bytes(batch, 2); }

  void bin(std::span<const double> values, std::span<const std::uint32_t> order, BinScratch& scratch) const {
    if (values.empty()) return;
    scratch.edges.clear();
    for (const double at : spec_->quantiles) scratch.edges.push_back(quantile(values, order, at));
    std::size_t passed = 0;
    for (std::size_t i = order.size(); i-- > 0;) {
      while (passed < scratch.edges.size() && scratch.edges[passed] <= values[order[i]]) ++passed;
      scratch.bins[order[i]] = static_cast<std::int64_t>(passed);
    }
  }

  // Marks the genes that stand in the sentence; returns how many genes there are to look at.
  std::uint64_t choose(const Row& row, std::span<const std::uint32_t> order, BinScratch& scratch) const {
    const std::uint64_t count = order.size();
    std::uint64_t left = 0;  // genes with a token that were not looked at
    for (std::uint64_t i = 0; i < count; ++i) left += scratch.tokens[i] >= 0 ? 1 : 0;
    std::uint64_t room = std::min(sentences_.spec().room(), left);
    std::fill_n(scratch.chosen.begin(), count, char{0});
    const auto take = [&](std::uint64_t i) {
      scratch.chosen[i] = 1;
      --room;
    };
    if (spec_->choice == Choice::Top && room < left) {
      for (std::uint64_t i = 0; i < count && room > 0; ++i) {
        if (scratch.tokens[order[i]] >= 0) take(order[i]);
      }
      return count;
    }
    // Selection sampling: each is taken with probability room / left.
    RowDraws draws(spec_->seed, row);
    const bool is_random = spec_->choice == Choice::Random && room < left;
    for (std::uint64_t i = 0; i < count && room > 0; ++i) {
      if (scratch.tokens[i] < 0) continue;
      if (!is_random || draws.below(left) < room) take(i);
      --left;
    }
    return count;
  }

  void write(const Row& row, std::uint64_t count, BinScratch& scratch, const BatchShape& batch, std::byte* out) const {
    std::uint64_t kept = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      scratch.tokens[kept] = scratch.tokens[i];
      scratch.bins[kept] = scratch.bins[i];
      kept += static_cast<std::uint64_t>(scratch.chosen[i]);
    }
    sentences_.write(
        row.number, kept, [&](std::uint64_t i) { return scratch.tokens[i]; }, out, out + mask_at(batch));
    std::int64_t* const first = sentences_.row_of(out + bins_at(batch), row.number);
    std::int64_t* next = first;
    if (sentences_.spec().cls) *next++ = 0;
    next = std::copy_n(scratch.bins.data(), kept, next);
    std::fill(next, first + sentences_.spec().length, spec_->pad_value);
  }

  CellReader reader_;
  Sentences sentences_;
  std::shared_ptr<const BinnedSpec> spec_;
};

class BinnedMaker final : public ColumnMaker {
 public:
  BinnedMaker(CellSpecPtr cells, SentenceSpecPtr sentences, BinnedSpec spec)
      : cells_(std::move(cells)),
        sentences_(std::move(sentences)),
        spec_(std::make_shared<const BinnedSpec>(std::move(spec))) {}
  [[nodiscard]] std::shared_ptr<const Column> make(const SourceInfo& source) const override {
    return std::make_shared<BinnedColumn>(cells_, sentences_, spec_, source);
  }
  [[nodiscard]] Parts parts() const noexcept override { return Parts::Records; }

 private:
  CellSpecPtr cells_;
  SentenceSpecPtr sentences_;
  std::shared_ptr<const BinnedSpec> spec_;
};

}  // namespace

std::shared_ptr<const ColumnMaker> make_binned(CellSpecPtr cells, std::shared_ptr<const SentenceSpec> sentences,
                                               BinnedSpec spec) {
  return std::make_shared<BinnedMaker>(std::move(cells), std::move(sentences), std::move(spec));
}

}  // namespace penstock::cells
