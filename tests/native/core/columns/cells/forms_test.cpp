// Forms of cells under the engine, against plain models: padded, restored, on any threads, in lent memory.
#include "core/columns/cells/forms.h"

#include "core/engine/read_rows.h"
#include "core/rows/sub_view.h"
#include "tests/native/core/engine/field_source.h"
#include "tests/native/core/engine/loader_fixture.h"

#include <array>
#include <cmath>
#include <map>
#include <random>
#include <string>

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

template <typename T>
std::vector<T> array_of(const Batch& batch, std::size_t part) {
  const PlacedArray& array = batch.arrays.at(0);
  const Dims& dims = part == 0 ? array.shape.dims : array.shape.further.at(part - 1).dims;
  const std::uint64_t at = array.at + (part == 0 ? 0 : array.shape.further.at(part - 1).at);
  std::vector<T> values(std::accumulate(dims.begin(), dims.end(), std::uint64_t{1}, std::multiplies<>()));
  if (!values.empty()) std::memcpy(values.data(), batch.slab.data() + at, values.size() * sizeof(T));
  return values;
}

LoaderOptions options_for(const Case& setup, const FieldRows& rows, MadeSpec maker) {
  BatchFormats formats;
  formats.emplace_back(std::make_shared<FieldSource>(rows), std::vector<ColumnSpec>{std::move(maker)}, Parts::None);
  const std::uint64_t size = formats[0].source->info().size;
  return options_of(setup, std::make_shared<IdentityOrder>(size), std::move(formats));
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
      Loader loader(options_for(setup, rows, maker));
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
        const auto genes = array_of<std::int32_t>(batch, 0);
        const auto values = array_of<double>(batch, 1);
        const auto offsets = array_of<std::int32_t>(batch, 2);
        ASSERT_EQ(offsets.size(), batch.plan.rows + 1);
        std::uint64_t at = 0;
        for (std::uint64_t i = 0; i < batch.plan.rows; ++i) {
          ASSERT_EQ(offsets[i], at);
          for (const auto& [gene, value] : placed(batch, i, made.cells, spec)) {
            ASSERT_EQ(genes.at(at), gene);
            ASSERT_DOUBLE_EQ(values.at(at++), value);
          }
        }
        ASSERT_EQ(offsets.back(), at);
        ASSERT_EQ(genes.size(), at);
        ASSERT_EQ(values.size(), at);
      });
      for_each_batch(made.rows, cells::make_dense(spec_of(spec), true), [&](const Batch& batch) {
        const auto x = array_of<double>(batch, 0);
        ASSERT_EQ(x.size(), batch.plan.rows * *spec.width);
        for (std::uint64_t i = 0; i < batch.plan.rows; ++i) {
          const auto row = placed(batch, i, made.cells, spec);
          for (std::uint32_t gene = 0; gene < *spec.width; ++gene) {
            const auto found = row.find(gene);
            ASSERT_DOUBLE_EQ(x[i * *spec.width + gene], found == row.end() ? 0 : found->second);
          }
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
    const auto ids = array_of<std::int64_t>(batch, 0);
    const auto mask = array_of<std::uint8_t>(batch, 1);
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
      for (std::uint64_t k = 0; k < 9; ++k) {
        ASSERT_EQ(ids[9 * i + k], k < words.size() ? words[k] : -5);
        ASSERT_EQ(mask[9 * i + k], k < words.size() ? 1 : 0);
      }
    }
  });
}

TEST(CellForms, BinnedByChanceIsAFunctionOfSeedEpochAndCellInAPartOfAViewToo) {
  const Made made = make_cells();
  const auto sentences = std::make_shared<const SentenceSpec>(SentenceSpec{.length = 8, .tokens = {}, .cls = 1});
  const auto maker_of = [&](std::uint64_t seed) {
    return cells::make_binned(spec_of(), sentences,
                              {.quantiles = {0, 0.5, 1}, .choice = cells::Choice::Random, .seed = seed});
  };
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::vector<std::int64_t>> all;
  std::uint64_t differ = 0;
  for_each_batch(made.rows, maker_of(3), [&](const Batch& batch) {
    const auto ids = array_of<std::int64_t>(batch, 0);
    for (std::uint64_t i = 0; i < batch.plan.valid; ++i) {
      const std::vector<std::int64_t> row(ids.begin() + static_cast<std::ptrdiff_t>(8 * i),
                                          ids.begin() + static_cast<std::ptrdiff_t>(8 * i + 8));
      const auto& first = all.emplace(std::pair(batch.picks[i].epoch, batch.picks[i].index), row).first->second;
      ASSERT_EQ(row, first);
      ASSERT_TRUE(std::is_sorted(row.begin() + 1, row.begin() + 8) || row.back() == 0);
    }
  });
  for (std::uint64_t cell = 0; cell < made.cells.size(); ++cell) differ += all[{0, cell}] != all[{1, cell}] ? 1 : 0;
  EXPECT_GT(differ, made.cells.size() / 2);
  const auto part =
      std::make_shared<const SubView>(std::make_shared<FieldSource>(made.rows), std::vector<std::uint64_t>{20, 3, 7});
  auto formats = std::make_shared<BatchFormats>();
  formats->emplace_back(part, std::vector<ColumnSpec>{MadeSpec(maker_of(3))}, Parts::None);
  const auto ids = array_of<std::int64_t>(*read_rows(formats, std::vector<std::uint64_t>{0, 1, 2}), 0);
  for (std::size_t row = 0; row < 3; ++row) {
    const std::uint64_t cell = std::array<std::uint64_t, 3>{20, 3, 7}.at(row);
    EXPECT_TRUE(std::equal(ids.begin() + static_cast<std::ptrdiff_t>(8 * row),
                           ids.begin() + static_cast<std::ptrdiff_t>(8 * row + 8), all[{0, cell}].begin()));
  }
}

TEST(CellForms, WhatCannotBeIsRefusedInWords) {
  const auto words = [](const FieldRows& rows, const MadeSpec& maker) -> std::string {
    try {
      auto formats = std::make_shared<BatchFormats>();
      formats->emplace_back(std::make_shared<FieldSource>(rows), std::vector<ColumnSpec>{maker}, Parts::None);
      static_cast<void>(read_rows(formats, std::vector<std::uint64_t>{0}));
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::InvalidArgument);
      return error.what();
    }
    return "";
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
  EXPECT_EQ(words(rows, cells::make_csr(spec_of({.value = "counts"}), {})),
            ": field gene of a cell is int16: must be "
            "uint8, uint16 or uint32");
  rows.fields = R"([["gene","<u2"],["count","<f4"]])";
  EXPECT_EQ(words(rows, cells::make_csr(spec_of({.value = "counts"}), {})), "the records have no field counts");
}

}  // namespace
}  // namespace penstock::testing
