// Values of entries, spread over a ready batch, against a model that looks at each record.
#include "core/batch/span_values.h"

#include "tests/native/core/columns/document_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace penstock::testing {
namespace {

constexpr std::uint32_t kFill = 0xfffffff0;

std::vector<ColumnSpec> specs_of(std::uint64_t lookahead, bool labels) {
  TargetSpec targets{.mask = true, .shorten = lookahead, .fields = {"loss"}};
  if (labels) targets.labels = FieldSpec{"labels", "token", {'i', 4}, 1, lookahead, true};
  return {targets, PerSpanSpec{"quality", {'u', 4}, kFill, lookahead}};
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

/// Gives the batch the values of its entries.
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
  std::vector<std::uint32_t> values;
  for (const std::uint64_t document : documents) {
    for (const DocumentRange& range : ranges_of(document)) ranges.push_back(range);
    firsts.push_back(ranges.size());
    values.push_back(static_cast<std::uint32_t>(document * 3));
  }
  keep_targets(batch, 0, entries, firsts, ranges);
  spread_values(batch, 1, entries, std::as_bytes(std::span(values)));
}

void expect_right(const Batch& batch, const DocumentStream& stream, std::uint64_t lookahead, bool labels) {
  std::vector<std::uint8_t> mask;
  std::vector<std::int32_t> labelled;
  std::vector<std::uint32_t> values;
  each_record(batch, lookahead, [&](std::uint64_t, std::int64_t at, std::uint64_t left) {
    const auto record = static_cast<std::size_t>(at);
    const bool does = at >= 0 && left >= 2 && stream.counts[record + 1] > 0 &&
                      is_kept(stream.number[record + 1], stream.offset[record + 1]);
    mask.push_back(does ? 1 : 0);
    labelled.push_back(does ? static_cast<std::int32_t>(stream.tokens[record + 1]) : -100);
    values.push_back(at < 0 ? kFill : static_cast<std::uint32_t>(stream.number[record] * 3));
  });
  EXPECT_EQ(labels ? further_values_of<std::uint8_t>(batch, 0) : values_of<std::uint8_t>(batch, 0), mask);
  if (labels) {
    EXPECT_EQ(values_of<std::int32_t>(batch, 0), labelled);
  }
  EXPECT_EQ(values_of<std::uint32_t>(batch, 1), values);
}

Loader loader_of(const FieldRows& rows, const std::vector<ColumnSpec>& specs) {
  Case setup;
  setup.batch = 7;
  setup.lends = true;
  BatchFormats formats;
  formats.emplace_back(std::make_shared<FieldSource>(rows), specs);
  const std::uint64_t size = formats[0].source->info().size;
  return Loader(options_of(setup, std::make_shared<IdentityOrder>(size), std::move(formats)));
}

TEST(SpanValues, AreSpreadOverTheRecordsOfTheirEntries) {
  const DocumentStream stream(500);
  std::uint64_t padded = 0;
  for (const std::uint64_t lookahead : {0, 1, 3}) {
    for (const std::uint64_t window : {0, 1, 13}) {
      FieldRows rows = stream.rows();
      if (window == 0 && lookahead > 0) continue;
      rows.lookahead = lookahead;
      rows.length = window == 0 ? 0 : window + lookahead;
      for (std::uint64_t i = 0; window == 0 && i < 33; ++i) rows.lengths.push_back(i * 5 % 13);
      const bool labels = lookahead > 0;
      Loader loader = loader_of(rows, specs_of(lookahead, labels));
      while (auto batch = next(loader)) {
        give(*batch);
        expect_right(*batch, stream, lookahead, labels);
        padded += batch->plan.rows - batch->plan.valid;
      }
    }
  }
  EXPECT_GT(padded, 0U);
}

TEST(SpanValues, AreSpreadOverPaddedRowsOnEitherSide) {
  const DocumentStream stream(300);
  FieldRows rows = stream.rows();
  for (std::uint64_t i = 0; i < 24; ++i) rows.lengths.push_back(i * 5 % 13);
  for (const bool left : {false, true}) {
    constexpr std::uint64_t kLength = 14;
    std::vector<ColumnSpec> specs = specs_of(0, true);
    std::get<TargetSpec>(specs[0]).padding = Padding{.length = kLength, .left = left};
    std::get<PerSpanSpec>(specs[1]).padding = Padding{.length = kLength, .left = left};
    Loader loader = loader_of(rows, specs);
    while (auto batch = next(loader)) {
      give(*batch);
      const auto labels = values_of<std::int32_t>(*batch, 0);
      const auto mask = further_values_of<std::uint8_t>(*batch, 0);
      const auto values = values_of<std::uint32_t>(*batch, 1);
      ASSERT_EQ(values.size(), batch->plan.rows * kLength);
      for (std::uint64_t i = 0; i < batch->plan.rows; ++i) {
        const auto& source = static_cast<const FieldSource&>(*batch->format->source);
        const std::uint64_t own = batch->row_length(i);
        const std::uint64_t lead = left ? kLength - own : 0;
        for (std::uint64_t k = 0; k < kLength; ++k) {
          const bool is_record = i < batch->plan.valid && k >= lead && k < lead + own;
          const std::uint64_t record = is_record ? source.first_of(batch->picks[i].index) + k - lead : 0;
          const bool does = is_record && k + 1 < lead + own && stream.counts[record + 1] > 0 &&
                            is_kept(stream.number[record + 1], stream.offset[record + 1]);
          const std::uint64_t at = i * kLength + k;
          ASSERT_EQ(mask[at], does ? 1 : 0);
          ASSERT_EQ(labels[at], does ? static_cast<std::int32_t>(stream.tokens[record + 1]) : -100);
          ASSERT_EQ(values[at], is_record ? static_cast<std::uint32_t>(stream.number[record] * 3) : kFill);
        }
      }
    }
  }
}

TEST(SpanValues, RecordsWithoutASpanHaveTheFillValueAndDoNotCount) {
  const DocumentStream stream(300);
  FieldRows rows = stream.rows();
  rows.lookahead = 1;
  rows.length = 21;
  Loader loader = loader_of(rows, specs_of(1, true));
  const auto batch = next(loader);
  for (std::uint64_t i = 0; i < batch->plan.valid; ++i) {  // a gap at the begin, in the middle and at the end
    SpanTable& spans = batch->rows[i].spans;
    if (i % 3 == 0) spans.erase(spans.begin());
    if (i % 3 == 1) spans.erase(spans.begin() + static_cast<std::ptrdiff_t>(spans.size() / 2));
    if (i % 3 == 2) spans.clear();
  }
  const auto covered = [&](std::uint64_t row, std::uint64_t record) {
    const SpanTable& spans = batch->rows[row].spans;
    return std::any_of(spans.begin(), spans.end(),
                       [&](const Span& span) { return span.start <= record && record < span.stop; });
  };
  give(*batch);
  const auto values = values_of<std::uint32_t>(*batch, 1);
  const auto mask = further_values_of<std::uint8_t>(*batch, 0);
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(values[i] == kFill, !covered(i / 20, i % 20));
    EXPECT_TRUE(covered(i / 20, i % 20 + 1) || mask[i] == 0);
  }
}

TEST(SpanValues, EveryWidthOfAValue) {
  const DocumentStream stream(100);
  FieldRows rows = stream.rows();
  rows.length = 9;
  for (const std::uint32_t bytes : {1, 2, 4, 8}) {
    Loader loader = loader_of(rows, {PerSpanSpec{"value", {'u', bytes}, 0x0807060504030201, 0}});
    while (auto batch = next(loader)) {
      const EntryNumbers entries = number_entries(*batch);
      std::vector<std::byte> values;
      for (std::size_t e = 0; e < entries.first_span.size(); ++e) {
        for (std::uint32_t b = 0; b < bytes; ++b) values.push_back(static_cast<std::byte>(e + std::size_t{16} * b));
      }
      spread_values(*batch, 0, entries, values);
      const std::byte* found = batch->slab.data() + batch->arrays[0].at;
      std::size_t span = 0;
      for (std::uint64_t i = 0; i < batch->plan.rows; ++i) {
        for (std::uint64_t k = 0; k < 9; ++k, found += bytes) {
          if (i >= batch->plan.valid) {
            for (std::uint32_t b = 0; b < bytes; ++b) EXPECT_EQ(found[b], static_cast<std::byte>(b + 1));
            continue;
          }
          const SpanTable& spans = batch->rows[i].spans;
          std::size_t s = 0;
          while (spans[s].stop <= k) ++s;
          EXPECT_EQ(std::memcmp(found, values.data() + std::size_t{entries.of_span[span + s]} * bytes, bytes), 0);
        }
        if (i < batch->plan.valid) span += batch->rows[i].spans.size();
      }
    }
  }
}

TEST(SpanValues, WhatCannotBeIsRefusedInWords) {
  const DocumentStream stream(100);
  FieldRows rows = stream.rows();
  rows.length = 9;
  Loader loader = loader_of(rows, specs_of(0, false));
  const auto batch = next(loader);
  const EntryNumbers entries = number_entries(*batch);
  const auto words = [](const auto& attempt) -> std::string {
    try {
      attempt();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::InvalidArgument);
      return error.what();
    }
    return "";
  };
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
