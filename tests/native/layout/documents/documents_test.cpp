// Documents of the compact layout, opaque ones, and the tables that tell where those of other formats begin.
#include "layout/documents/documents.h"

#include "core/base/error.h"
#include "layout/documents/document_bounds.h"
#include "layout/documents/document_table.h"
#include "tests/native/layout/model.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

namespace penstock::testing {
namespace {

using layout::BoundsArray;
using layout::DocumentBounds;
using layout::DocumentTable;
using layout::SpanKind;

TEST(DocumentsTest, EveryDocumentHasItsRecordsAndItsEntryAndWhatWasReadOfAnIndexIsKept) {
  const Model model(SpanKind::Compact, {{{{3, "a"}, {0, "empty"}, {1, ""}, {5000, "long"}}, {}, {}},
                                        {{}, {}, {}},
                                        {{{0, ""}, {2, "second shard"}}, {}, {}}});
  const auto source = layout::make_documents(model.dataset());
  const auto keeping = layout::make_documents(model.dataset());
  ASSERT_GT(keeping->info().keeps->grant(1 << 20), 0U);
  ASSERT_EQ(source->info().size, 6U);
  std::uint64_t index = 0;
  std::uint64_t first = 0;
  for (std::uint32_t shard = 0; shard < model.shards().size(); ++shard) {
    for (std::uint64_t number = 0; number < model.shards()[shard].spans.size(); ++number) {
      const ModelSpan& wanted = model.shards()[shard].spans[number];
      const Driven row = driven(*source, index);
      ASSERT_EQ(row.row.length, wanted.records);
      for (std::uint64_t i = 0; i < wanted.records; ++i) {
        ASSERT_EQ(std::memcmp(row.row.records + 2 * i, model.record(first + i).data(), 2), 0);
      }
      first += wanted.records;
      ASSERT_EQ(row.row.spans.size(), 1U);
      const Span& span = row.row.spans[0];
      EXPECT_EQ(entry_of(span), wanted.entry);
      EXPECT_EQ(std::tuple(span.start, span.stop, span.begins, span.ends, span.offset, span.shard, span.entry),
                std::tuple(0U, wanted.records, true, true, 0, shard, number));
      EXPECT_EQ(row.bytes_read("stream.bin"), 2 * wanted.records);
      EXPECT_EQ(row.bytes_read("metadata.index"), 32U);
      EXPECT_EQ(row.bytes_read("metadata.bin"), wanted.entry.size());
      EXPECT_EQ(driven(*keeping, index).bytes_read("metadata.index") > 0, number == 0);
      const Driven again = driven(*keeping, index++);
      EXPECT_EQ(again.bytes_read("metadata.index"), 0U);
      EXPECT_EQ(again.memory, row.memory);
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
  std::uint64_t index = 0;
  for (const std::string entry : {"a", "", "ccc", "d"}) {
    const Driven row = driven(*source, index++);
    EXPECT_EQ(row.row.length, 0U);
    ASSERT_EQ(row.row.spans.size(), 1U);
    EXPECT_EQ(entry_of(row.row.spans[0]), entry);
    EXPECT_EQ(row.bytes_read("metadata.bin"), entry.size());
  }
  EXPECT_THROW(layout::make_windows(model.dataset(), 1, 0), Error);
}

TEST(DocumentsTest, TokenStreamsIdsAndEmptyDatasetsSayWhyTheyHaveNone) {
  const auto expect_refused = [](const Model& model, const std::string& words) {
    expect_error([&] { layout::make_documents(model.dataset()); }, ErrorKind::InvalidArgument, words);
  };
  expect_refused(Model(SpanKind::None, {{{{3, ""}}, {}, {}}}), "token stream");
  expect_refused(Model(SpanKind::Ids, {{{}, {0}, {"x"}}}), "convert");
  expect_refused(Model(SpanKind::Compact, {{{}, {}, {}}}), "no documents");
}

// ---- DocumentTable, against a list: even and uneven blocks, empty documents, documents whose bytes lie far apart

using Rule = std::function<std::uint64_t(std::uint64_t)>;

const Rule kNothing = [](std::uint64_t) { return 0; };
const Rule kEven = [](std::uint64_t) { return 5; };

std::vector<DocumentTable::Document> fill(DocumentTable& table, std::uint64_t documents, const Rule& tokens,
                                          const Rule& gap) {
  std::vector<DocumentTable::Document> all;
  std::uint64_t token = 0;
  std::uint64_t byte = 7;
  for (std::uint64_t i = 0; i < documents; ++i) {
    table.add(tokens(i), byte);
    all.push_back({token, tokens(i), byte});
    token += tokens(i);
    byte += 2 * tokens(i) + gap(i);
  }
  table.finish();
  EXPECT_EQ(table.documents(), documents);
  EXPECT_EQ(table.tokens(), token);
  return all;
}

void expect_same(const DocumentTable& table, const std::vector<DocumentTable::Document>& all) {
  for (std::uint64_t i = 0; i < all.size(); ++i) {
    const DocumentTable::Document found = table.at(i);
    ASSERT_EQ(found.token, all[i].token) << i;
    ASSERT_EQ(found.tokens, all[i].tokens) << i;
    ASSERT_TRUE(!table.knows_bytes() || found.byte == all[i].byte) << i;
    for (const std::uint64_t token : {all[i].token, all[i].token + all[i].tokens - 1}) {
      ASSERT_TRUE(all[i].tokens == 0 || table.find(token) == i) << token;
    }
  }
}

// Blocks have 1,024 documents: counts around one and two of them.
TEST(DocumentTableTest, GivesEachDocumentAndFindsItByEachOfItsEnds) {
  const Rule uneven = [](std::uint64_t i) { return i * 7919 % 13; };  // some are empty
  const Rule even_then_one_longer = [](std::uint64_t i) { return i == 1023 ? 6 : 5; };
  const Rule far = [](std::uint64_t i) { return i % 3 == 0 ? std::uint64_t{1} << 31 : 0; };
  for (const std::uint64_t documents : {0, 1, 2, 1023, 1024, 1025, 2047, 2048, 2049, 5000}) {
    for (const Rule& tokens : {uneven, kEven, even_then_one_longer}) {
      for (const Rule& gap : {kNothing, kEven, far}) {
        for (const bool knows_bytes : {false, true}) {
          DocumentTable table(knows_bytes);
          expect_same(table, fill(table, documents, tokens, gap));
        }
      }
    }
  }
}

TEST(DocumentTableTest, DocumentsOfOneSizeTakeNoMemoryEach) {
  DocumentTable even(true);
  fill(even, 1'000'000, kEven, kEven);
  EXPECT_LT(even.memory(), 200'000U);
  DocumentTable uneven(false);
  fill(
      uneven, 1'000'000, [](std::uint64_t i) { return i % 2000; }, kNothing);
  EXPECT_LT(uneven.memory(), 4'200'000U);
}

// ---- DocumentBounds, against a list: the forms of datatrove and litdata, ranges around tokens

constexpr BoundsArray kEnds{};                                                                        // datatrove's
constexpr BoundsArray kOffsets{.offset = 4, .width = 4, .has_first = true, .base = 4008, .unit = 2};  // of litdata

class DocumentBoundsTest : public ::testing::Test {
 protected:
  // The file of documents that end at these tokens.
  layout::ForeignFile file(const BoundsArray& array, const std::vector<std::uint64_t>& ends) {
    std::vector<std::uint64_t> values = ends;
    if (array.has_first) values.insert(values.begin(), 0);
    for (std::uint64_t& each : values) each = array.base + each * array.unit;
    std::vector<std::byte> bytes(array.offset);
    const auto append = [&](const auto& typed) {
      const std::vector<std::byte> more = bytes_of(typed);
      bytes.insert(bytes.end(), more.begin(), more.end());
    };
    if (array.width == 4) {
      append(std::vector<std::uint32_t>(values.begin(), values.end()));
    } else {
      append(values);
    }
    return put(bytes);
  }
  layout::ForeignFile put(const std::vector<std::byte>& bytes) {
    write_file(folder_.path("bounds"), bytes);
    return layout::ForeignFile(local(folder_.path("bounds")));
  }
  static DocumentBounds bounds(const layout::ForeignFile& index, const BoundsArray& array, std::uint64_t documents,
                               std::uint64_t tokens) {
    Digest digest;
    return {index, array, documents, tokens, digest};
  }
  void expect_refused(const BoundsArray& array, const std::vector<std::uint64_t>& ends, const std::string& words) {
    const layout::ForeignFile index = file(array, ends);
    expect_error([&] { bounds(index, array, ends.size(), 9); }, ErrorKind::Corruption, words);
  }

  TemporaryFolder folder_;
};

std::vector<std::uint64_t> uneven_ends(std::uint64_t documents) {
  std::vector<std::uint64_t> ends;
  for (std::uint64_t i = 0, end = 0; i < documents; ++i) ends.push_back(end += i * 7919 % 5);  // some are empty
  return ends;
}

std::vector<std::uint64_t> starts_of(const DocumentBounds& bounds, const layout::ForeignFile& index,
                                     std::uint64_t first, std::uint64_t stop) {
  const DocumentBounds::Place place = bounds.place(first, stop);
  std::vector<std::byte> bytes(place.bytes);
  index.read(place.offset, bytes);
  layout::Shard shard;
  shard.index = index.file();
  std::vector<std::uint64_t> starts(stop - first + 1);
  bounds.starts(shard, first, bytes.data(), starts);
  return starts;
}

// Samples are kept of each 512 documents: counts around one and two blocks.
TEST_F(DocumentBoundsTest, GiveWhereEachDocumentBeginsAndRangesThatHoldAllOfATokenRange) {
  for (const BoundsArray& array : {kEnds, kOffsets}) {
    for (const std::uint64_t documents : {1, 2, 511, 512, 513, 1024, 1025, 1700}) {
      const std::vector<std::uint64_t> ends = uneven_ends(documents);
      const std::uint64_t tokens = ends.back();
      const layout::ForeignFile index = file(array, ends);
      const DocumentBounds found = bounds(index, array, documents, tokens);
      for (std::uint64_t i = 0; i < documents; ++i) {
        const std::vector<std::uint64_t> starts = starts_of(found, index, i, i + 1);
        ASSERT_EQ(starts[0], i == 0 ? 0 : ends[i - 1]);
        ASSERT_EQ(starts[1], ends[i]);
      }
      for (std::uint64_t from = 0; from < tokens; from += 37) {
        const std::uint64_t to = std::min(from + 50, tokens);
        const DocumentBounds::Range range = found.around(from, to);
        const std::vector<std::uint64_t> starts = starts_of(found, index, range.first, range.stop);
        ASSERT_LE(starts.front(), from);
        ASSERT_GE(starts.back(), to);
        ASSERT_LE(range.stop - range.first, 2 * DocumentBounds::kBlock) << "a bounded range";
      }
    }
  }
}

TEST_F(DocumentBoundsTest, DocumentsThatCannotBeAreRefused) {
  expect_refused(kEnds, {5, 3, 9}, "document 1 ends at token 3");
  expect_refused(kEnds, {5, 8}, "its 2 documents end at token 8 of 9");
  expect_refused(kEnds, {5, 10}, "document 1 ends at token 10");
  expect_refused(kEnds, {UINT64_MAX}, "document 0");
  expect_refused(kOffsets, {5, 3, 9}, "document 1 ends at byte 4,014");
  const layout::ForeignFile between = put(bytes_of(std::vector<std::uint32_t>{0, 4008, 4011, 4012}));
  expect_error([&] { bounds(between, kOffsets, 2, 2); }, ErrorKind::Corruption, "4,011");
  EXPECT_EQ(bounds(file(kEnds, {}), kEnds, 0, 0).around(0, 0).stop, 0U) << "there may be none";
}

TEST_F(DocumentBoundsTest, AFileThatChangedAfterItWasOpenedIsRefused) {
  const layout::ForeignFile index = file(kEnds, {5, 7, 9});
  const DocumentBounds opened = bounds(index, kEnds, 3, 9);
  file(kEnds, {5, 700, 9});
  expect_error([&] { starts_of(opened, index, 1, 2); }, ErrorKind::Corruption, "changed");
}

}  // namespace
}  // namespace penstock::testing
