// Values of entries, spread over a ready batch, against a model that looks at each record.
#include "core/batch/span_values.h"

#include "tests/native/core/columns/document_stream.h"
#include "tests/native/message_of.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace penstock::testing {
namespace {

constexpr std::uint64_t kFill = 0xf7f6f5f4f3f2f1f0;

/// How spans' values are spread over records.
struct Spread {
  std::uint64_t lookahead = 0;
  std::uint64_t window = 0;  // 0: ragged rows
  std::optional<Padding> padding = {};
  bool has_gaps = false;  // records without a span
};

bool has_labels(const Spread& spread) {
  return spread.lookahead > 0 || spread.padding;
}

/// Values of `bytes` bytes.
std::vector<ColumnSpec> specs_of(const Spread& spread, std::uint32_t bytes = 4) {
  TargetSpec targets{.mask = true, .shorten = spread.lookahead, .fields = {"loss"}, .padding = spread.padding};
  if (has_labels(spread)) targets.labels = FieldSpec{"labels", "token", {'i', 4}, 1, spread.lookahead, true};
  return {targets, PerSpanSpec{"quality", {'u', bytes}, kFill, spread.lookahead, spread.padding}};
}

/// Ranges of a document: some of its records, beyond its end too, overlapping and in no order.
std::vector<DocumentRange> ranges_of(std::uint64_t document) {
  switch (document % 4) {
    case 0: return {};
    case 1: return {{0, 3}};
    case 2: return {{5, 1'000}, {1, 2}};
    default: return {{2, 4}, {3, 6}, {4, 4}};
  }
}

bool is_kept(std::uint64_t document, std::uint64_t offset) {
  for (const auto& [begin, end] : ranges_of(document)) {
    if (offset >= begin && offset < end) return true;
  }
  return false;
}

/// Gives the batch the values of its entries, of this type.
template <typename T>
void give(Batch& batch) {
  const EntryNumbers entries = number_entries(batch);
  std::vector<std::uint64_t> documents;  // by number
  std::vector<const Span*> spans;
  for (std::uint64_t i = 0; i < batch.plan.valid; ++i) {
    for (const Span& span : batch.rows[i].spans) spans.push_back(&span);
  }
  for (const std::uint64_t first : entries.first_span) documents.push_back(spans.at(first)->entry);
  EXPECT_EQ(std::set(documents.begin(), documents.end()).size(), documents.size()) << "an entry is there once";
  ASSERT_EQ(entries.of_span.size(), spans.size());
  for (std::size_t s = 0; s < spans.size(); ++s) EXPECT_EQ(documents[entries.of_span[s]], spans[s]->entry);

  std::vector<std::uint64_t> firsts{0};
  std::vector<DocumentRange> ranges;
  std::vector<T> values;
  for (const std::uint64_t document : documents) {
    for (const DocumentRange& range : ranges_of(document)) ranges.push_back(range);
    firsts.push_back(ranges.size());
    values.push_back(static_cast<T>(document * 3));
  }
  keep_targets(batch, 0, entries, firsts, ranges);
  spread_values(batch, 1, entries, std::as_bytes(std::span(values)));
}

template <typename T>
void expect_spread(const Batch& batch, const DocumentStream& stream, const Spread& spread) {
  const auto& source = static_cast<const FieldSource&>(*batch.format->source);
  std::vector<std::uint8_t> mask;
  std::vector<std::int32_t> labels;
  std::vector<T> values;
  for (std::uint64_t i = 0; i < batch.plan.rows; ++i) {
    const std::uint64_t own = batch.row_length(i);
    const std::uint64_t length = spread.padding ? spread.padding->length : own - std::min(own, spread.lookahead);
    const std::uint64_t lead = spread.padding && spread.padding->left ? length - own : 0;
    const auto is_covered = [&](std::uint64_t k) {  // of the row, and it has a span
      const SpanTable& spans = batch.rows[i].spans;
      return i < batch.plan.valid && k < own && std::any_of(spans.begin(), spans.end(), [&](const Span& span) {
               return span.start <= k && k < span.stop;
             });
    };
    for (std::uint64_t at = 0; at < length; ++at) {
      const std::uint64_t k = at - lead;
      const std::uint64_t record = i < batch.plan.valid ? source.first_of(batch.picks[i].index) + k : 0;
      const bool does = at >= lead && is_covered(k + 1) && stream.counts[record + 1] > 0 &&
                        is_kept(stream.number[record + 1], stream.offset[record + 1]);
      const bool has_value = at >= lead && is_covered(k);
      mask.push_back(does ? 1 : 0);
      labels.push_back(does ? static_cast<std::int32_t>(stream.tokens[record + 1]) : -100);
      values.push_back(static_cast<T>(has_value ? stream.number[record] * 3 : kFill));
    }
  }
  EXPECT_EQ(values_of<T>(batch, 1), values);
  const bool labelled = has_labels(spread);
  EXPECT_EQ(labelled ? further_values_of<std::uint8_t>(batch, 0) : values_of<std::uint8_t>(batch, 0), mask);
  if (labelled) {
    EXPECT_EQ(values_of<std::int32_t>(batch, 0), labels);
  }
}

Loader loader_of(const FieldRows& rows, const std::vector<ColumnSpec>& specs) {
  BatchFormats formats;
  formats.emplace_back(std::make_shared<FieldSource>(rows), specs);
  const std::uint64_t size = formats[0].source->info().size;
  return Loader(options_of({.batch = 7, .lends = true}, std::make_shared<IdentityOrder>(size), std::move(formats)));
}

/// A gap at the begin, in the middle and at the end of rows.
void make_gaps(Batch& batch) {
  for (std::uint64_t i = 0; i < batch.plan.valid; ++i) {
    SpanTable& spans = batch.rows[i].spans;
    if (spans.empty()) continue;
    if (i % 3 == 0) spans.erase(spans.begin());
    if (i % 3 == 1) spans.erase(spans.begin() + static_cast<std::ptrdiff_t>(spans.size() / 2));
    if (i % 3 == 2) spans.clear();
  }
}

/// Returns how many rows were padding.
template <typename T>
std::uint64_t expect_spread_in_all(const Spread& spread) {
  const DocumentStream stream(500);
  FieldRows rows = stream.rows();
  rows.lookahead = spread.lookahead;
  rows.length = spread.window == 0 ? 0 : spread.window + spread.lookahead;
  for (std::uint64_t i = 0; spread.window == 0 && i < 33; ++i) rows.lengths.push_back(i * 5 % 13);
  Loader loader = loader_of(rows, specs_of(spread, sizeof(T)));
  std::uint64_t padded = 0;
  while (auto batch = next(loader)) {
    if (spread.has_gaps) make_gaps(*batch);
    give<T>(*batch);
    expect_spread<T>(*batch, stream, spread);
    padded += batch->plan.rows - batch->plan.valid;
  }
  return padded;
}

TEST(SpanValues, AreSpreadOverTheRecordsOfTheirEntries) {
  std::uint64_t padded = 0;
  for (const bool has_gaps : {false, true}) {
    for (const std::uint64_t lookahead : {0, 1, 3}) {
      for (const std::uint64_t window : {1, 13}) {
        padded += expect_spread_in_all<std::uint32_t>({.lookahead = lookahead, .window = window, .has_gaps = has_gaps});
      }
    }
    expect_spread_in_all<std::uint32_t>({.has_gaps = has_gaps});
    for (const bool left : {false, true}) {
      expect_spread_in_all<std::uint32_t>({.padding = Padding{.length = 14, .left = left}, .has_gaps = has_gaps});
    }
  }
  EXPECT_GT(padded, 0U);
}

TEST(SpanValues, MayHaveAnyWidth) {
  expect_spread_in_all<std::uint8_t>({.window = 9});
  expect_spread_in_all<std::uint16_t>({.window = 9});
  expect_spread_in_all<std::uint64_t>({.window = 9});
}

TEST(SpanValues, WhatCannotBeIsRefusedInWords) {
  const DocumentStream stream(100);
  FieldRows rows = stream.rows();
  rows.length = 9;
  Loader loader = loader_of(rows, specs_of({.window = 9}));
  const auto batch = next(loader);
  const EntryNumbers entries = number_entries(*batch);
  const auto words = [](const auto& attempt) { return message_of(attempt, ErrorKind::InvalidArgument); };
  std::vector<std::uint64_t> firsts(entries.first_span.size() + 1);
  EXPECT_EQ(words([&] { keep_targets(*batch, 1, entries, firsts, {}); }), "column 1 takes no values of spans");
  EXPECT_EQ(words([&] { spread_values(*batch, 2, entries, {}); }), "column 2 takes no values of spans");
  EXPECT_NE(words([&] { spread_values(*batch, 1, entries, {}); }).find("and values of 0: the batch has"),
            std::string::npos);
  for (std::uint64_t i = 0; i < batch->plan.valid; ++i) {
    for (Span& span : batch->rows[i].spans) span.offset = -1;
  }
  EXPECT_EQ(words([&] { keep_targets(*batch, 0, entries, firsts, {}); }),
            "loss_mask: these spans do not say where in their documents they begin");
  const auto made = [&](PerSpanSpec spec) {
    return words([&] { const BatchFormat format(std::make_shared<FieldSource>(rows), {spec}); });
  };
  EXPECT_EQ(made({"quality", {'c', 8}, 0, 0}),
            "column quality: a value of a span is a bool, an integer or a float, not complex64");
  EXPECT_EQ(made({"quality", {'u', 4}, 0, 9}), "column quality: drops 9 records of a row of 9");
}

}  // namespace
}  // namespace penstock::testing
