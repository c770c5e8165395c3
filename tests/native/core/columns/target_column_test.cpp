// loss_mask and labels against a model that looks at each record, under the engine.
#include "core/columns/target_column.h"

#include "tests/native/core/columns/document_stream.h"
#include "tests/native/message_of.h"

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
  std::optional<Padding> padding = {};
};

TargetSpec spec_of(const Wanted& wanted) {
  TargetSpec spec;
  const ScalarType type{'i', wanted.label_bytes};
  if (wanted.labels) spec.labels = FieldSpec{"labels", "token", type, 1, wanted.lookahead, true};
  spec.mask = wanted.mask;
  spec.shorten = wanted.lookahead;
  if (wanted.field) spec.fields = {"loss"};
  spec.cross_document = wanted.cross_document;
  spec.padding = wanted.padding;
  spec.bounds = {wanted.by, "token", wanted.by == By::BeginValue ? DocumentStream::kBegin : DocumentStream::kEnd};
  return spec;
}

/// Whether the target of record `at` counts, `left` records of its row being there from it on.
bool counts(const DocumentStream& stream, const Wanted& wanted, std::uint64_t at, std::uint64_t left) {
  if (left < 2 || (wanted.field && stream.counts[at + 1] == 0)) return false;
  return wanted.cross_document || !stream.begins_at(at + 1);
}

/// As int64, whatever the width.
std::vector<std::int64_t> labels_of(const Batch& batch, std::uint32_t bytes) {
  const auto widened = [](const auto& values) { return std::vector<std::int64_t>(values.begin(), values.end()); };
  switch (bytes) {
    case 1: return widened(values_of<std::int8_t>(batch, 0));
    case 2: return widened(values_of<std::int16_t>(batch, 0));
    case 4: return widened(values_of<std::int32_t>(batch, 0));
    default: return values_of<std::int64_t>(batch, 0);
  }
}

void expect_targets_right(const Batch& batch, const DocumentStream& stream, const Wanted& wanted) {
  const auto& source = static_cast<const FieldSource&>(*batch.format->source);
  std::uint64_t width = 0;  // of padded rows
  for (std::uint64_t i = 0; wanted.padding && i < batch.plan.valid; ++i) {
    const std::uint64_t multiple = wanted.padding->multiple_of;
    const std::uint64_t own = std::max<std::uint64_t>(batch.row_length(i), 1);
    width = std::max(width, (own + multiple - 1) / multiple * multiple);
  }
  if (wanted.padding && wanted.padding->length > 0) width = wanted.padding->length;
  std::vector<std::uint8_t> mask;
  std::vector<std::int64_t> labels;
  const auto pad = [&](std::uint64_t count) {
    mask.insert(mask.end(), count, 0);
    labels.insert(labels.end(), count, -100);
  };
  for (std::uint64_t i = 0; i < batch.plan.rows; ++i) {
    const bool is_padding = i >= batch.plan.valid;
    const std::uint64_t length = batch.row_length(i);
    const std::uint64_t own = is_padding && wanted.padding ? 0 : length - std::min(length, wanted.lookahead);
    if (wanted.padding && wanted.padding->left) pad(width - own);
    for (std::uint64_t k = 0; k < own; ++k) {
      pad(1);
      const std::uint64_t at = is_padding ? 0 : source.first_of(batch.picks[i].index) + k;
      if (is_padding || !counts(stream, wanted, at, length - k)) continue;
      mask.back() = 1;
      labels.back() = stream.tokens[at + 1];
    }
    if (wanted.padding && !wanted.padding->left) pad(width - own);
  }
  if (wanted.padding) {
    EXPECT_EQ(batch.arrays.at(0).shape.dims, (Dims{batch.plan.rows, width}));
  }
  if (wanted.labels) {
    EXPECT_EQ(labels_of(batch, wanted.label_bytes), labels);
  }
  if (wanted.mask) {
    EXPECT_EQ(values_of<std::uint8_t>(batch, 0, wanted.labels ? 1 : 0), mask);
  }
}

/// Every batch of two epochs, the last ones padded.
void expect_targets_right(FieldRows rows, const DocumentStream& stream, const Wanted& wanted, bool lends = false) {
  Case setup;
  setup.batch = 7;
  setup.per_epoch = true;
  setup.lends = lends;
  Loader loader(options_of(setup, std::move(rows), {spec_of(wanted)}, Parts::Records));
  std::uint64_t padded = 0;
  while (loader.position() < loader.job().cursor().run_end()) {
    loader.begin();
    while (auto batch = next(loader)) {
      expect_targets_right(*batch, stream, wanted);
      padded += batch->plan.rows - batch->plan.valid;
    }
  }
  EXPECT_GT(padded, 0U);
}

TEST(TargetColumn, IsWhatTheModelSaysOfWindowsAndOfDocumentsOfAnyLength) {
  const DocumentStream stream(500);
  for (const std::uint64_t lookahead : {0, 1, 2, 5}) {
    for (const std::uint64_t window : {0, 1, 4, 13}) {
      if (window == 0 && lookahead > 0) continue;
      FieldRows rows = stream.rows();
      rows.lookahead = lookahead;
      rows.length = window + lookahead;
      for (std::uint64_t i = 0; i < 33; ++i) rows.lengths.push_back(i * 5 % 13);
      for (const bool field : {false, true}) {
        for (const bool cross_document : {false, true}) {
          for (const By by : {By::Spans, By::EndValue, By::BeginValue}) {
            Wanted wanted{.lookahead = lookahead, .field = field, .cross_document = cross_document, .by = by};
            wanted.labels = false;
            expect_targets_right(rows, stream, wanted);
            if (lookahead == 0) continue;
            wanted.labels = true;
            expect_targets_right(rows, stream, wanted, true);
            wanted.mask = false;
            if (!field) expect_targets_right(rows, stream, wanted);
          }
        }
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
    expect_targets_right(rows, stream, {.lookahead = 0, .field = true, .label_bytes = 4, .padding = padding}, true);
  }
}

TEST(TargetColumn, EveryWidthOfLabelsAndFieldsAndFieldsApart) {
  const DocumentStream stream(300);
  const auto expect = [&](FieldRows rows) {
    rows.lookahead = 1;
    rows.length = 14;
    for (const std::uint32_t bytes : {1, 2, 4, 8}) {
      expect_targets_right(rows, stream, {.field = true, .cross_document = false, .label_bytes = bytes});
      expect_targets_right(rows, stream, {.mask = false, .cross_document = false, .label_bytes = bytes});
    }
    rows.apart = true;
    expect_targets_right(rows, stream, {.field = true, .cross_document = false, .by = By::EndValue});
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

TEST(TargetColumn, WhatCannotBeIsRefusedInWords) {
  const auto words = [](const FieldRows& rows, const TargetSpec& spec) {
    return message_of([&] { const BatchFormat format(std::make_shared<FieldSource>(rows), {spec}); },
                      ErrorKind::InvalidArgument);
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
