// Forms of cells under the engine, against plain models: padded, restored, on any threads, in lent memory.
#include "core/columns/cells/forms.h"

#include "core/rows/sub_view.h"
#include "tests/native/core/columns/document_stream.h"
#include "tests/native/message_of.h"

#include <cmath>
#include <map>

namespace penstock::testing {
namespace {

using cells::CellSpec;
using cells::SentenceSpec;

constexpr std::uint32_t kGenes = 90;
using Rows = std::vector<std::map<std::uint32_t, double>>;  // by cell, what its genes' values are

struct Made {
  FieldRows rows{.fields = R"([["gene","<u2"],["other","|u1"],["count","<u2"]])"};
  Rows cells;
};

Made make_cells(bool apart = false) {
  Made made;
  made.rows.apart = apart;
  std::mt19937 random(4);
  for (int cell = 0; cell < 41; ++cell) {
    auto& genes = made.cells.emplace_back();
    for (std::uint32_t gene = 0; cell % 7 != 2 && gene < kGenes; ++gene) {
      if (random() % 3 == 0) genes[gene] = static_cast<double>(random() % 6);
    }
    made.rows.lengths.push_back(genes.size());
    for (const auto& [gene, value] : genes) {
      put_values(made.rows.bytes, static_cast<std::uint16_t>(gene), std::uint8_t{9}, static_cast<std::uint16_t>(value));
    }
  }
  return made;
}

std::shared_ptr<const CellSpec> spec_of(CellSpec spec = {}) {
  return std::make_shared<const CellSpec>(std::move(spec));
}

/// Calls `look` with each batch of two epochs, in several ways of reading.
template <typename Look>
void for_each_batch(const FieldRows& rows, const MadeSpec& maker, const Look& look) {
  for (const bool lends : {false, true}) {
    for (const unsigned threads : {1U, 4U}) {
      Case setup;
      setup.batch = 6;
      setup.lends = lends;
      setup.threads = threads;
      Loader loader(options_of(setup, rows, {maker}, Parts::None));
      std::uint64_t padded = 0;
      while (auto batch = next(loader)) {
        look(*batch);
        padded += batch->plan.rows - batch->plan.valid;
      }
      EXPECT_GT(padded, 0U);
    }
  }
}

/// The cell of row i by numbers of the batch; empty in padding.
std::map<std::uint32_t, double> placed(const Batch& batch, std::uint64_t i, const Rows& cells, const CellSpec& spec) {
  std::map<std::uint32_t, double> row;
  if (i >= batch.plan.valid) return row;
  double sum = 0;
  const auto& cell = cells[batch.picks[i].index];
  for (const auto& [gene, value] : cell) sum += value;
  for (const auto& [gene, value] : cell) {
    std::int64_t place = gene;
    if (!spec.places.empty()) place = gene < spec.places.size() ? spec.places[gene] : -1;
    if (place < 0 || (spec.width && static_cast<std::uint64_t>(place) >= *spec.width)) continue;
    double taken = value;
    if (spec.normalize && sum != 0) taken = value / (sum / *spec.normalize);
    row[static_cast<std::uint32_t>(place)] = spec.log1p ? std::log1p(taken) : taken;
  }
  return row;
}

std::vector<std::int32_t> turned_places() {
  std::vector<std::int32_t> places(kGenes, -1);
  for (std::int32_t place = 0; place < 30; ++place) places[static_cast<std::size_t>((place * 37 + 5) % 90)] = place;
  return places;
}

std::vector<CellSpec> cell_specs() {
  std::vector<std::int32_t> rising(50, -1);
  for (std::int32_t place = 0; place < 10; ++place) rising[static_cast<std::size_t>(3 * place + 4)] = place;
  return {{.width = kGenes},
          {.known = kGenes, .width = 40},
          {.width = kGenes, .normalize = 100.0},
          {.width = 10, .places = rising, .log1p = true},
          {.width = 30, .places = turned_places(), .normalize = 1e4, .log1p = true}};
}

TEST(CellForms, CsrAndDenseAreTheModelsMatrix) {
  for (const bool apart : {false, true}) {
    const Made made = make_cells(apart);
    for (const CellSpec& spec : cell_specs()) {
      for_each_batch(made.rows, cells::make_csr(spec_of(spec), {.double_value = true}), [&](const Batch& batch) {
        const auto genes = values_of<std::int32_t>(batch, 0, 0);
        const auto values = values_of<double>(batch, 0, 1);
        std::vector<std::int32_t> offsets{0};
        std::vector<std::int32_t> wanted;
        for (std::uint64_t i = 0; i < batch.plan.rows; ++i) {
          for (const auto& [gene, value] : placed(batch, i, made.cells, spec)) {
            ASSERT_DOUBLE_EQ(values.at(wanted.size()), value);
            wanted.push_back(static_cast<std::int32_t>(gene));
          }
          offsets.push_back(static_cast<std::int32_t>(wanted.size()));
        }
        ASSERT_EQ(genes, wanted);
        ASSERT_EQ(values.size(), wanted.size());
        ASSERT_EQ(values_of<std::int32_t>(batch, 0, 2), offsets);
      });
      for_each_batch(made.rows, cells::make_dense(spec_of(spec), true), [&](const Batch& batch) {
        const auto x = values_of<double>(batch, 0, 0);
        ASSERT_EQ(x.size(), batch.plan.rows * *spec.width);
        for (std::uint64_t i = 0; i < batch.plan.rows; ++i) {
          std::vector<double> row(*spec.width);
          for (const auto& [gene, value] : placed(batch, i, made.cells, spec)) row[gene] = value;
          for (std::uint64_t gene = 0; gene < row.size(); ++gene) ASSERT_DOUBLE_EQ(x[i * row.size() + gene], row[gene]);
        }
      });
    }
  }
}

TEST(CellForms, RankedIsTheModelsSentence) {
  const Made made = make_cells();
  const CellSpec cells{.width = 30, .places = turned_places()};
  SentenceSpec sentences{.length = 9, .tokens = {}, .cls = 1, .eos = 2, .pad = -5};
  std::vector<double> medians;
  for (std::int64_t gene = 0; gene < 30; ++gene) {
    sentences.tokens.push_back(gene % 5 == 0 ? -1 : 100 + gene);
    medians.push_back(gene % 3 == 0 ? 1 : 2);
  }
  const auto maker = cells::make_ranked(spec_of(cells), std::make_shared<const SentenceSpec>(sentences), medians);
  for_each_batch(made.rows, maker, [&](const Batch& batch) {
    std::vector<std::int64_t> wanted_ids;
    std::vector<std::uint8_t> wanted_mask;
    for (std::uint64_t i = 0; i < batch.plan.rows; ++i) {
      std::vector<std::pair<double, std::uint32_t>> keys;
      for (const auto& [gene, value] : placed(batch, i, made.cells, cells)) {
        if (value > 0 && sentences.tokens[gene] >= 0) keys.emplace_back(-value / medians[gene], gene);
      }
      std::sort(keys.begin(), keys.end());
      if (keys.size() > sentences.room()) keys.resize(sentences.room());
      std::vector<std::int64_t> words;
      if (i < batch.plan.valid) {
        words.push_back(1);
        for (const auto& key : keys) words.push_back(sentences.tokens[key.second]);
        words.push_back(2);
      }
      std::vector<std::uint8_t> there(words.size(), 1);
      words.resize(9, -5);
      there.resize(9, 0);
      wanted_ids.insert(wanted_ids.end(), words.begin(), words.end());
      wanted_mask.insert(wanted_mask.end(), there.begin(), there.end());
    }
    ASSERT_EQ(values_of<std::int64_t>(batch, 0, 0), wanted_ids);
    ASSERT_EQ(values_of<std::uint8_t>(batch, 0, 1), wanted_mask);
  });
}

// What a bin's edge decides, and that each epoch draws anew: test_cells.py.
TEST(CellForms, BinnedByChanceIsAFunctionOfSeedEpochAndCellInAPartOfAViewToo) {
  const Made made = make_cells();
  const auto sentences = std::make_shared<const SentenceSpec>(SentenceSpec{.length = 8, .tokens = {}, .cls = 1});
  const MadeSpec maker =
      cells::make_binned(spec_of(), sentences, {.quantiles = {0, 0.5, 1}, .choice = cells::Choice::Random, .seed = 3});
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::vector<std::int64_t>> all;
  const auto expect = [&](const Batch& batch, const auto& cell_of) {
    const auto ids = values_of<std::int64_t>(batch, 0);
    for (std::uint64_t i = 0; i < batch.plan.valid; ++i) {
      const auto begin = ids.begin() + static_cast<std::ptrdiff_t>(8 * i);
      const std::vector<std::int64_t> row(begin, begin + 8);
      ASSERT_EQ(row, all.emplace(std::pair(batch.picks[i].epoch, cell_of(batch.picks[i].index)), row).first->second);
      ASSERT_TRUE(std::is_sorted(row.begin() + 1, row.begin() + 8) || row.back() == 0);
    }
  };
  for_each_batch(made.rows, maker, [&](const Batch& batch) { expect(batch, [](std::uint64_t i) { return i; }); });
  const std::vector<std::uint64_t> chosen{20, 3, 7};
  auto formats = std::make_shared<BatchFormats>();
  formats->emplace_back(std::make_shared<const SubView>(std::make_shared<FieldSource>(made.rows), chosen),
                        std::vector<ColumnSpec>{maker}, Parts::None);
  const auto part = read_rows(formats, std::vector<std::uint64_t>{0, 1, 2});
  expect(*part, [&](std::uint64_t i) { return chosen[i]; });
}

TEST(CellForms, WhatCannotBeIsRefusedInWords) {
  const auto words = [](const FieldRows& rows, const MadeSpec& maker) {
    return message_of([&] { batch_of(rows, {maker}, {0}, Parts::None); }, ErrorKind::InvalidArgument);
  };
  FieldRows rows{.fields = R"([["gene","<u2"],["count","<f4"]])", .lengths = {2}};
  put_values(rows.bytes, std::uint16_t{4}, 1.0F, std::uint16_t{4}, 2.0F);
  EXPECT_EQ(words(rows, cells::make_csr(spec_of(), {})), ": cell 0 (0 of this file): gene 4 is there twice");
  EXPECT_EQ(words(rows, cells::make_dense(spec_of(), false)),
            "Dense needs to know how many genes there are: give genes=");
  FieldRows windows = rows;
  windows.length = 2;
  EXPECT_EQ(words(windows, cells::make_csr(spec_of(), {})), "cells are documents, not windows");
  rows.fields = R"([["gene","<i2"],["count","<f4"]])";
  EXPECT_EQ(words(rows, cells::make_csr(spec_of(), {})),
            ": field gene of a cell is int16: must be uint8, uint16 or uint32");
  rows.fields = R"([["gene","<u2"],["count","<f4"]])";
  EXPECT_EQ(words(rows, cells::make_csr(spec_of({.value = "counts"}), {})), "the records have no field counts");
}

}  // namespace
}  // namespace penstock::testing
