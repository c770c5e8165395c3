// loss_mask and labels against a model that looks at each record, under the engine.
#include "core/columns/target_column.h"

#include "core/engine/read_rows.h"
#include "tests/native/core/columns/document_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace penstock::testing {
namespace {

using By = DocumentBounds::By;

struct Wanted {
  std::uint64_t lookahead = 1;
  bool labels = true;
  bool mask = true;
  bool field = false;
  bool cross_document = true;
  By by = By::Spans;
  std::uint32_t label_bytes = 8;
};

TargetSpec spec_of(const Wanted& wanted) {
  TargetSpec spec;
  const ScalarType type{'i', wanted.label_bytes};
  if (wanted.labels) spec.labels = FieldSpec{"labels", "token", type, 1, wanted.lookahead, true};
  spec.mask = wanted.mask;
  spec.shorten = wanted.lookahead;
  if (wanted.field) spec.fields = {"loss"};
  spec.cross_document = wanted.cross_document;
  spec.bounds = {wanted.by, "token", wanted.by == By::BeginValue ? DocumentStream::kBegin : DocumentStream::kEnd};
  return spec;
}

/// Whether the target of record `at` counts, `left` records of its row being there from it on.
bool counts(const DocumentStream& stream, const Wanted& wanted, std::int64_t at, std::uint64_t left) {
  if (at < 0 || left < 2) return false;
  const auto target = static_cast<std::uint64_t>(at) + 1;
  if (wanted.field && stream.counts[target] == 0) return false;
  return wanted.cross_document || !stream.begins_at(target);
}

template <typename Label>
void expect_right(const Batch& batch, const DocumentStream& stream, const Wanted& wanted) {
  std::vector<std::uint8_t> mask;
  std::vector<Label> labels;
  each_record(batch, wanted.lookahead, [&](std::uint64_t, std::int64_t at, std::uint64_t left) {
    mask.push_back(counts(stream, wanted, at, left) ? 1 : 0);
    const auto target = static_cast<std::size_t>(at) + 1;
    labels.push_back(mask.back() == 1 ? static_cast<Label>(stream.tokens[target]) : static_cast<Label>(-100));
  });
  if (wanted.labels) {
    EXPECT_EQ(values_of<Label>(batch, 0), labels);
  }
  if (!wanted.mask) return;
  const auto found = wanted.labels ? further_values_of<std::uint8_t>(batch, 0) : values_of<std::uint8_t>(batch, 0);
  EXPECT_EQ(found, mask);
}

void expect_right(const Batch& batch, const DocumentStream& stream, const Wanted& wanted) {
  switch (wanted.label_bytes) {
    case 1: return expect_right<std::int8_t>(batch, stream, wanted);
    case 2: return expect_right<std::int16_t>(batch, stream, wanted);
    case 4: return expect_right<std::int32_t>(batch, stream, wanted);
    default: return expect_right<std::int64_t>(batch, stream, wanted);
  }
}

/// Every batch of two epochs, the last ones padded.
void expect_right(FieldRows rows, const DocumentStream& stream, const Wanted& wanted, bool lends = false) {
  Case setup;
  setup.batch = 7;
  setup.per_epoch = true;
  setup.lends = lends;
  BatchFormats formats;
  formats.emplace_back(std::make_shared<FieldSource>(std::move(rows)), std::vector<ColumnSpec>{spec_of(wanted)},
                       Parts::Records);
  const std::uint64_t size = formats[0].source->info().size;
  Loader loader(options_of(setup, std::make_shared<IdentityOrder>(size), std::move(formats)));
  std::uint64_t padded = 0;
  while (loader.position() < loader.job().cursor().run_end()) {
    loader.begin();
    while (auto batch = next(loader)) {
      expect_right(*batch, stream, wanted);
      padded += batch->plan.rows - batch->plan.valid;
    }
  }
  EXPECT_GT(padded, 0U);
}

TEST(TargetColumn, IsWhatTheModelSaysOfWindows) {
  const DocumentStream stream(500);
  for (const std::uint64_t lookahead : {0, 1, 2, 5}) {
    for (const std::uint64_t window : {1, 4, 13}) {
      FieldRows rows = stream.rows();
      rows.lookahead = lookahead;
      rows.length = window + lookahead;
      for (const bool field : {false, true}) {
        for (const bool cross_document : {false, true}) {
          for (const By by : {By::Spans, By::EndValue, By::BeginValue}) {
            Wanted wanted{.lookahead = lookahead, .field = field, .cross_document = cross_document, .by = by};
            wanted.labels = false;
            expect_right(rows, stream, wanted);
            if (lookahead == 0) continue;
            wanted.labels = true;
            expect_right(rows, stream, wanted, true);
            wanted.mask = false;
            if (!field) expect_right(rows, stream, wanted);
          }
        }
      }
    }
  }
}

TEST(TargetColumn, IsWhatTheModelSaysOfDocumentsOfAnyLength) {
  const DocumentStream stream(400);
  FieldRows rows = stream.rows();
  for (std::uint64_t i = 0; i < 33; ++i) rows.lengths.push_back(i * 5 % 13);
  for (const bool field : {false, true}) {
    for (const bool cross_document : {false, true}) {
      for (const By by : {By::Spans, By::EndValue}) {
        expect_right(rows, stream, {0, false, true, field, cross_document, by});
      }
    }
  }
}

TEST(TargetColumn, PaddedDocumentsAreRectanglesOnEitherSide) {
  const DocumentStream stream(400);
  FieldRows rows = stream.rows();
  for (std::uint64_t i = 0; i < 33; ++i) rows.lengths.push_back(i * 5 % 13);
  for (const Padding& padding : {Padding{}, Padding{.multiple_of = 4}, Padding{.length = 15, .left = true},
                                 Padding{.multiple_of = 5, .left = true}}) {
    const Wanted wanted{.lookahead = 0, .field = true, .label_bytes = 4};
    TargetSpec spec = spec_of(wanted);
    spec.padding = padding;
    Case setup;
    setup.batch = 7;
    setup.lends = true;
    BatchFormats formats;
    formats.emplace_back(std::make_shared<FieldSource>(rows), std::vector<ColumnSpec>{spec});
    Loader loader(options_of(setup, std::make_shared<IdentityOrder>(rows.lengths.size()), std::move(formats)));
    while (auto batch = next(loader)) {
      const auto& source = static_cast<const FieldSource&>(*batch->format->source);
      std::uint64_t length = padding.length;
      for (std::uint64_t i = 0; padding.length == 0 && i < batch->plan.valid; ++i) {
        const std::uint64_t own = std::max<std::uint64_t>(batch->row_length(i), 1);
        length = std::max(length, (own + padding.multiple_of - 1) / padding.multiple_of * padding.multiple_of);
      }
      std::vector<std::int32_t> labels(batch->plan.rows * length, -100);
      std::vector<std::uint8_t> mask(labels.size(), 0);
      for (std::uint64_t i = 0; i < batch->plan.valid; ++i) {
        const std::uint64_t own = batch->row_length(i);
        const std::uint64_t at = i * length + (padding.left ? length - own : 0);
        const std::uint64_t first = source.first_of(batch->picks[i].index);
        for (std::uint64_t k = 0; k < own; ++k) {
          if (!counts(stream, wanted, static_cast<std::int64_t>(first + k), own - k)) continue;
          labels[at + k] = static_cast<std::int32_t>(stream.tokens[first + k + 1]);
          mask[at + k] = 1;
        }
      }
      const PlacedArray& array = batch->arrays.at(0);
      EXPECT_EQ(array.shape.dims, (Dims{batch->plan.rows, length}));
      EXPECT_EQ(values_of<std::int32_t>(*batch, 0), labels);
      EXPECT_EQ(further_values_of<std::uint8_t>(*batch, 0), mask);
    }
  }
}

TEST(TargetColumn, EveryWidthOfLabelsAndFieldsAndFieldsApart) {
  const DocumentStream stream(300);
  const auto expect = [&](FieldRows rows) {
    rows.lookahead = 1;
    rows.length = 14;
    for (const std::uint32_t bytes : {1, 2, 4, 8}) {
      expect_right(rows, stream, {.field = true, .cross_document = false, .label_bytes = bytes});
      expect_right(rows, stream, {.mask = false, .cross_document = false, .label_bytes = bytes});
    }
    rows.apart = true;
    expect_right(rows, stream, {.field = true, .cross_document = false, .by = By::EndValue});
  };
  expect(stream.rows<std::uint8_t>("|u1"));
  expect(stream.rows<std::uint16_t>("<u2"));
  expect(stream.rows<std::int32_t>("<i4"));
  expect(stream.rows<std::uint64_t>("<u8"));
  FieldRows bools{.fields = R"([["token","<u4"],["loss","|b1"]])", .documents = stream.begins};
  for (std::size_t i = 0; i < stream.tokens.size(); ++i) {
    put_values(bools.bytes, stream.tokens[i], static_cast<std::uint8_t>(stream.counts[i] > 0 ? 1 : 0));
  }
  expect(bools);
}

TEST(TargetColumn, SourcesWhoseRecordsDifferMeetInOneBatch) {
  const DocumentStream one(300, 1);
  const DocumentStream other(300, 2);
  FieldRows rows[]{one.rows(), other.rows<std::int64_t>("<i8")};
  BatchFormats formats;
  for (FieldRows& each : rows) {
    each.lookahead = 1;
    each.length = 12;
    Wanted wanted{.field = true, .cross_document = false, .label_bytes = 4};
    if (&each != rows) wanted.by = By::EndValue;
    formats.emplace_back(std::make_shared<FieldSource>(each), std::vector<ColumnSpec>{spec_of(wanted)});
  }
  Case setup;
  setup.batch = 6;
  std::vector<Stage> stages;
  for (std::uint64_t at = 0; at < 50; at += 2) stages.push_back({at, static_cast<std::uint32_t>(at / 2 % 2)});
  const auto order = std::make_shared<StagedOrder>(25, stages, false);
  Loader loader(options_of(setup, order, std::move(formats)));
  while (auto batch = next(loader)) {
    std::vector<std::int32_t> labels;
    each_record(*batch, 1, [&](std::uint64_t place, std::int64_t at, std::uint64_t left) {
      const std::uint64_t row = place / 11;
      const DocumentStream& stream = at >= 0 && batch->picks[row].source == 1 ? other : one;
      const Wanted wanted{.field = true, .cross_document = false};
      const bool does = counts(stream, wanted, at, left);
      labels.push_back(does ? static_cast<std::int32_t>(stream.tokens[static_cast<std::size_t>(at) + 1]) : -100);
    });
    EXPECT_EQ(values_of<std::int32_t>(*batch, 0), labels);
    for (std::size_t i = 0; i < labels.size(); ++i) {
      EXPECT_EQ(further_values_of<std::uint8_t>(*batch, 0)[i], labels[i] == -100 ? 0 : 1);
    }
  }
}

TEST(TargetColumn, WhatCannotBeIsRefusedInWords) {
  const auto words = [](const FieldRows& rows, const TargetSpec& spec) -> std::string {
    try {
      const BatchFormat format(std::make_shared<FieldSource>(rows), {spec});
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::InvalidArgument);
      return error.what();
    }
    return "";
  };
  FieldRows rows{.fields = R"([["token","<u2"],["weight","<f4"],["pair","|u1",[2]]])", .length = 4};
  rows.bytes.resize(64);
  EXPECT_NE(words(rows, {.mask = true, .padding = Padding{}}).find("padded rows are of documents"), std::string::npos);
  FieldRows ragged = rows;
  ragged.length = 0;
  ragged.lengths = {1, 3};
  EXPECT_EQ(words(ragged, {.mask = true, .padding = Padding{.multiple_of = 0}}), "multiple_of=0: must be at least 1");
  const FieldSpec pair{"labels", "pair", {'i', 8}, 1, 1, true};
  EXPECT_EQ(words(rows, {.labels = pair, .shorten = 1}), "labels: field pair holds no single integer a record");
  EXPECT_EQ(words(rows, {.mask = true, .shorten = 4}), "loss_mask drops 4 records of a row of 4");
  EXPECT_EQ(words(rows, {.mask = true, .fields = {"loss"}}), "the records have no field loss");
  for (const std::string field : {"weight", "pair"}) {
    EXPECT_EQ(words(rows, {.mask = true, .fields = {field}}),
              "loss_mask: field " + field + " holds no single bool or integer a record");
  }
}

}  // namespace
}  // namespace penstock::testing
