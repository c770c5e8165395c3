#include "core/base/error.h"
#include "core/columns/cells/kernels.h"
#include "core/columns/cells/ranking.h"
#include "core/columns/cells/sentences.h"

#include <utility>

namespace penstock::cells {
namespace {

constexpr ScalarType kRankToken{'i', 8};
constexpr ScalarType kRankMask{'b', 1};

// Of the calling thread, for the cell that it ranks.
struct RankScratch {
  std::vector<double> keys;
  std::vector<double> medians;
  std::vector<std::int64_t> tokens;
  Ranking ranking;
};

RankScratch& rank_scratch(std::uint64_t records) {
  static thread_local RankScratch scratch;
  if (scratch.keys.size() < records) {
    scratch.keys.resize(records);
    scratch.medians.resize(records);
    scratch.tokens.resize(records);
  }
  return scratch;
}

class RankedColumn final : public Column {
 public:
  RankedColumn(CellSpecPtr cells, SentenceSpecPtr sentences, std::shared_ptr<const std::vector<double>> medians,
               const SourceInfo& source)
      : reader_(std::move(cells), source, Values::Finite),
        sentences_(std::move(sentences)),
        medians_(std::move(medians)) {
    if (!source.shape.ragged) raise(ErrorKind::InvalidArgument, "cells are documents, not windows");
  }

  [[nodiscard]] ArrayShape shape(const BatchShape& batch) const override {
    const std::uint64_t length = sentences_.spec().length;
    const std::uint64_t mask_at = sentences_.bytes(batch, 1);
    return {.type = kRankToken,
            .dims = {batch.rows, length},
            .bytes = mask_at + batch.rows * length,
            .further = {{kRankMask, {batch.rows, length}, mask_at}}};
  }

  void fill_row(const Row& row, const BatchShape& batch, std::byte* out) const override {
    const Cell cell = reader_.read(row);
    RankScratch& scratch = rank_scratch(cell.genes.size());
    const std::uint64_t count = medians_->empty() ? take<false>(cell, scratch) : take<true>(cell, scratch);
    if (!medians_->empty()) kernels().divide_each(scratch.keys.data(), scratch.medians.data(), count);
    const auto best = scratch.ranking.largest(std::span(scratch.keys).first(count), sentences_.spec().room());
    sentences_.write(
        row.number, best.size(), [&](std::uint64_t i) { return scratch.tokens[best[i]]; }, out,
        out + sentences_.bytes(batch, 1));
  }

  void fill_padding(const BatchShape& batch, std::byte* out) const override {
    sentences_.write_padding(batch, out, out + sentences_.bytes(batch, 1));
  }

 private:
  // The genes that may stand in a sentence; returns how many.
  template <bool kHasMedians>
  std::uint64_t take(const Cell& cell, RankScratch& scratch) const {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < cell.genes.size(); ++i) {
      const std::uint32_t gene = cell.genes[i];
      const std::int64_t token = sentences_.token(gene);
      scratch.keys[count] = cell.values[i];
      scratch.tokens[count] = token;
      if constexpr (kHasMedians) scratch.medians[count] = gene < medians_->size() ? (*medians_)[gene] : 1;
      count += static_cast<std::uint64_t>(token >= 0) & static_cast<std::uint64_t>(cell.values[i] > 0);
    }
    return count;
  }

  CellReader reader_;
  Sentences sentences_;
  std::shared_ptr<const std::vector<double>> medians_;
};

class RankedMaker final : public ColumnMaker {
 public:
  RankedMaker(CellSpecPtr cells, SentenceSpecPtr sentences, std::vector<double> medians)
      : cells_(std::move(cells)),
        sentences_(std::move(sentences)),
        medians_(std::make_shared<const std::vector<double>>(std::move(medians))) {}
  [[nodiscard]] std::shared_ptr<const Column> make(const SourceInfo& source) const override {
    return std::make_shared<RankedColumn>(cells_, sentences_, medians_, source);
  }
  [[nodiscard]] Parts parts() const noexcept override { return Parts::Records; }

 private:
  CellSpecPtr cells_;
  SentenceSpecPtr sentences_;
  std::shared_ptr<const std::vector<double>> medians_;
};

}  // namespace

std::shared_ptr<const ColumnMaker> make_ranked(CellSpecPtr cells, std::shared_ptr<const SentenceSpec> sentences,
                                               std::vector<double> medians) {
  return std::make_shared<RankedMaker>(std::move(cells), std::move(sentences), std::move(medians));
}

}  // namespace penstock::cells
