// Documents of the compact layout, and opaque ones.
#include "layout/documents/documents.h"

#include "core/base/error.h"
#include "tests/native/layout/model.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

namespace penstock::testing {
namespace {

using layout::SpanKind;

std::string entry_of(const Span& span) {
  return {reinterpret_cast<const char*>(span.raw), span.raw_bytes};
}

TEST(DocumentsTest, EveryDocumentHasItsRecordsAndItsEntry) {
  const Model model(SpanKind::Compact, {{{{3, "a"}, {0, "empty"}, {1, ""}, {5000, "long"}}, {}, {}},
                                        {{}, {}, {}},
                                        {{{0, ""}, {2, "second shard"}}, {}, {}}});
  const auto source = layout::make_documents(model.dataset());
  ASSERT_EQ(source->info().size, 6U);
  std::uint64_t index = 0;
  std::uint64_t first = 0;
  for (std::uint32_t shard = 0; shard < model.shards().size(); ++shard) {
    for (std::uint64_t number = 0; number < model.shards()[shard].spans.size(); ++number) {
      const ModelSpan& wanted = model.shards()[shard].spans[number];
      Driven driven;
      drive(*source, index++, driven);
      ASSERT_EQ(driven.row.length, wanted.records);
      for (std::uint64_t i = 0; i < wanted.records; ++i) {
        ASSERT_EQ(std::memcmp(driven.row.records + 2 * i, model.record(first + i).data(), 2), 0);
      }
      first += wanted.records;
      ASSERT_EQ(driven.row.spans.size(), 1U);
      const Span& span = driven.row.spans[0];
      EXPECT_EQ(entry_of(span), wanted.entry);
      EXPECT_EQ(std::tuple(span.start, span.stop, span.begins, span.ends, span.offset, span.shard, span.entry),
                std::tuple(0U, wanted.records, true, true, 0, shard, number));
      EXPECT_EQ(driven.bytes_read("stream.bin"), 2 * wanted.records);
      EXPECT_EQ(driven.bytes_read("metadata.index"), 32U);
      EXPECT_EQ(driven.bytes_read("metadata.bin"), wanted.entry.size());
    }
  }
}

TEST(DocumentsTest, WhatWasReadOfAnIndexIsKeptSoThatADocumentCostsItsRecordsAlone) {
  const Model model(SpanKind::Compact, {{{{3, "a"}, {0, "empty"}, {1, ""}, {50, "long"}}, {}, {}},
                                        {{{0, ""}, {2, "second shard"}}, {}, {}}});
  const auto source = layout::make_documents(model.dataset());
  ASSERT_GT(source->info().keeps->grant(1 << 20), 0U);
  for (const bool again : {false, true}) {
    for (std::uint64_t index = 0; index < 6; ++index) {
      Driven driven;
      drive(*source, index, driven);
      const bool is_first = !again && (index == 0 || index == 4);
      EXPECT_EQ(driven.bytes_read("metadata.index") > 0, is_first) << index;
      EXPECT_EQ(driven.row.length, (std::vector<std::uint64_t>{3, 0, 1, 50, 0, 2}).at(index));
    }
  }
}

TEST(DocumentsTest, RowsOfAGroupReadABlockOfTheIndexOnceUnlessTheOneThatReadsItFails) {
  const std::vector<ModelSpan> spans(300, {7, ""});  // in two blocks
  const Model model(SpanKind::Compact, {{spans, {}, {}}});
  for (const bool fails : {false, true}) {
    const auto source = layout::make_documents(model.dataset());
    ASSERT_GT(source->info().keeps->grant(1 << 20), 0U);
    std::vector<Row> rows(300);
    std::array<std::size_t, 3> planned{};
    for (unsigned round = 0; round < planned.size(); ++round) {
      Reads reads;
      for (Row& row : rows) {
        const auto number = static_cast<std::uint64_t>(&row - rows.data());
        row.index = number;
        row.group = rows.data();
        if (row.measured || (fails && round > 0 && number == 0)) continue;
        ASSERT_TRUE(source->plan(row, round, Parts::None, reads));
      }
      for (const Read& read : reads) perform(read);
      planned.at(round) = reads.size();
    }
    // The entry after document 255 lies in the second block.
    EXPECT_EQ(planned, (fails ? std::array<std::size_t, 3>{2, 254, 0} : std::array<std::size_t, 3>{2, 0, 0}));
    for (const Row& row : rows) EXPECT_EQ(row.length, fails && row.index == 0 ? 0 : 7) << row.index;
  }
}

TEST(DocumentsTest, OpaqueDocumentsAreTheirEntriesAlone) {
  const Model model(SpanKind::Opaque, {{{}, {}, {"a", "", "ccc"}}, {{}, {}, {}}, {{}, {}, {"d"}}});
  const auto source = layout::make_documents(model.dataset());
  ASSERT_EQ(source->info().size, 4U);
  EXPECT_EQ(source->info().identity.records, 4U);
  const std::vector<std::string> wanted = {"a", "", "ccc", "d"};
  for (std::uint64_t i = 0; i < wanted.size(); ++i) {
    Driven driven;
    drive(*source, i, driven);
    EXPECT_EQ(driven.row.length, 0U);
    ASSERT_EQ(driven.row.spans.size(), 1U);
    EXPECT_EQ(entry_of(driven.row.spans[0]), wanted[i]);
    EXPECT_EQ(driven.bytes_read("metadata.bin"), wanted[i].size());
  }
  EXPECT_THROW(layout::make_windows(model.dataset(), 1, 0), Error);
}

TEST(DocumentsTest, TokenStreamsIdsAndEmptyDatasetsSayWhyTheyHaveNone) {
  const auto message = [](const Model& model) -> std::string {
    try {
      layout::make_documents(model.dataset());
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::InvalidArgument);
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message(Model(SpanKind::None, {{{{3, ""}}, {}, {}}})).find("token stream"), std::string::npos);
  EXPECT_NE(message(Model(SpanKind::Ids, {{{}, {0}, {"x"}}})).find("convert"), std::string::npos);
  EXPECT_NE(message(Model(SpanKind::Compact, {{{}, {}, {}}})).find("no documents"), std::string::npos);
}

}  // namespace
}  // namespace penstock::testing
