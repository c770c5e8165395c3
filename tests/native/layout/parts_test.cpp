// Parts of a row: what is not wanted is not read, what is wanted is the same as with all parts.
#include "core/base/error.h"
#include "layout/foreign/megatron.h"
#include "tests/native/layout/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>
#include <string>
#include <tuple>
#include <utility>

namespace penstock::testing {
namespace {

using layout::SpanKind;
using SourcePtr = std::shared_ptr<const Source>;

constexpr Parts kSpansAndRecords = Parts::Records | Parts::Spans;
constexpr Parts kEntriesAlone = Parts::Entries | Parts::Spans;
constexpr Parts kSome[] = {Parts::All, kSpansAndRecords, Parts::Records, kEntriesAlone, Parts::Entries, Parts::Spans};

/// The names of files read, without folders.
std::set<std::string> files_read(const Driven& driven) {
  std::set<std::string> names;
  for (const Read& read : driven.reads) names.insert(std::filesystem::path(read.file->path()).filename().string());
  return names;
}

void expect_spans(const Driven& all, const Driven& some, Parts wanted) {
  ASSERT_EQ(some.row.spans.size(), has_spans(wanted) ? all.row.spans.size() : 0);
  for (std::size_t i = 0; i < some.row.spans.size(); ++i) {
    const Span& a = all.row.spans[i];
    const Span& b = some.row.spans[i];
    ASSERT_EQ(std::tie(a.start, a.stop, a.begins, a.ends, a.offset, a.shard, a.entry),
              std::tie(b.start, b.stop, b.begins, b.ends, b.offset, b.shard, b.entry));
    if (has(wanted, Parts::Entries)) {
      ASSERT_EQ(a.raw_bytes, b.raw_bytes);
      ASSERT_TRUE(a.raw_bytes == 0 || std::memcmp(a.raw, b.raw, a.raw_bytes) == 0);
    } else {
      ASSERT_EQ(b.raw, nullptr);
      ASSERT_EQ(b.raw_bytes, 0U);
    }
  }
}

/// Each observation with `wanted` is that part of it with all parts, and of files only those named are read.
void expect_parts(const Source& source, Parts wanted, const std::set<std::string>& files) {
  std::set<std::string> read;
  for (std::uint64_t i = 0; i < source.info().size; ++i) {
    SCOPED_TRACE(::testing::Message() << "observation " << i << ", parts " << static_cast<unsigned>(wanted));
    Driven all;
    drive(source, i, all);
    Driven some;
    drive(source, i, some, wanted);
    if (::testing::Test::HasFatalFailure()) return;
    ASSERT_EQ(some.row.length, all.row.length);
    if (has(wanted, Parts::Records)) {
      const auto bytes = some.records(source);
      ASSERT_TRUE(std::equal(bytes.begin(), bytes.end(), all.records(source).begin()));
    }
    expect_spans(all, some, wanted);
    read.merge(files_read(some));
  }
  EXPECT_EQ(read, files) << "parts " << static_cast<unsigned>(wanted);
}

Model compact_model() {
  return Model(SpanKind::Compact, {{{{3, "aa"}, {0, "e"}, {5, "b"}, {1, "ccc"}, {4095, "d"}, {2, ""}}, {}, {}},
                                   {{{7, "second"}}, {}, {}}});
}

TEST(PartsTest, CompactWindowsReadOnlyTheFilesOfTheirParts) {
  const Model model = compact_model();
  const std::string stream = "stream.bin";
  const std::set<std::string> ways = {"metadata.directory", "metadata.index"};
  for (const std::uint64_t window : {4, 4110}) {
    const SourcePtr source = layout::make_windows(model.dataset(), window, 1);
    expect_parts(*source, Parts::Records, {stream});
    expect_parts(*source, kSpansAndRecords, {stream, "metadata.directory", "metadata.index"});
    expect_parts(*source, Parts::Spans, ways);
    expect_parts(*source, kEntriesAlone, {"metadata.bin", "metadata.directory", "metadata.index"});
  }
}

TEST(PartsTest, WhatWasReadWithoutEntriesIsKeptForRowsWithThem) {
  const Model model(SpanKind::Compact, {{std::vector<ModelSpan>(3000, {10, "entry"}), {}, {}}});
  const SourcePtr source = layout::make_windows(model.dataset(), 20, 0);
  source->info().keeps->grant(1 << 20);
  Driven spans;
  drive(*source, 700, spans, kSpansAndRecords);
  EXPECT_GT(spans.bytes_read("metadata.index"), 0U);
  Driven all;
  drive(*source, 700, all);
  EXPECT_EQ(files_read(all), (std::set<std::string>{"stream.bin", "metadata.bin"}));
  expect_row(model, *source, all, 14000, 14020);
}

// The ids are in the records, so those are read for spans, into memory of the row's own where they are not wanted.
TEST(PartsTest, IdsWindowsReadTheirRecordsForTheSpans) {
  const Model model(SpanKind::Ids, {{{}, {0, 0, 1, 3, 3, 2, 1, 4}, {"aa", "", "b", "cccc", "d"}}, {{}, {0, 0}, {"x"}}});
  for (const std::uint64_t window : {1, 3, 9}) {
    const SourcePtr source = layout::make_windows(model.dataset(), window, 0);
    expect_parts(*source, Parts::Records, {"stream.bin"});
    expect_parts(*source, kSpansAndRecords, {"stream.bin"});
    expect_parts(*source, Parts::Spans, {"stream.bin"});
    expect_parts(*source, kEntriesAlone, {"stream.bin", "metadata.index", "metadata.bin"});
  }
  // Without spans the records beside a window are not read either.
  const SourcePtr source = layout::make_windows(model.dataset(), 3, 0);
  Driven driven;
  drive(*source, 1, driven, Parts::Records);
  EXPECT_EQ(driven.bytes_read("stream.bin"), 3 * source->info().stored_record_bytes);
}

TEST(PartsTest, TokenStreamsHaveRecordsAlone) {
  const Model model(SpanKind::None, {{{{5, ""}}, {}, {}}, {{{4, ""}}, {}, {}}});
  const SourcePtr source = layout::make_windows(model.dataset(), 3, 1);
  for (const Parts wanted : kSome) {
    const std::set<std::string> files = {"stream.bin"};
    expect_parts(*source, wanted, has(wanted, Parts::Records) ? files : std::set<std::string>{});
  }
}

TEST(PartsTest, DocumentsAlwaysReadWhatTellsWhereTheyLie) {
  const Model model = compact_model();
  const SourcePtr source = layout::make_documents(model.dataset());
  expect_parts(*source, Parts::Records, {"stream.bin", "metadata.index"});
  expect_parts(*source, kSpansAndRecords, {"stream.bin", "metadata.index"});
  expect_parts(*source, Parts::Spans, {"metadata.index"});
  expect_parts(*source, kEntriesAlone, {"metadata.index", "metadata.bin"});
}

TEST(PartsTest, OpaqueDocumentsReadTheirIndexForTheEntryAlone) {
  const Model model(SpanKind::Opaque, {{{}, {}, {"a", "", "ccc"}}, {{}, {}, {"d"}}});
  const SourcePtr source = layout::make_documents(model.dataset());
  expect_parts(*source, Parts::Records, {});
  expect_parts(*source, kSpansAndRecords, {});
  expect_parts(*source, kEntriesAlone, {"metadata.index", "metadata.bin"});
}

TEST(PartsTest, MegatronsDocumentsAreFoundWithoutTheBin) {
  const TemporaryFolder folder;
  const std::vector<std::int32_t> lengths = {3, 1, 2, 4};
  std::vector<std::byte> idx = bytes_of(std::vector<char>{'M', 'M', 'I', 'D', 'I', 'D', 'X', 0, 0});
  const auto append = [&](const std::vector<std::byte>& bytes) { idx.insert(idx.end(), bytes.begin(), bytes.end()); };
  append(bytes_of(std::vector<std::uint64_t>{1}));
  append(bytes_of(std::vector<std::uint8_t>{8}));
  append(bytes_of(std::vector<std::uint64_t>{4, 4}));
  append(bytes_of(lengths));
  append(bytes_of(std::vector<std::int64_t>{0, 6, 8, 12}));
  append(bytes_of(std::vector<std::int64_t>{0, 1, 3, 4}));
  write_file(folder.path("a.idx"), idx);
  std::vector<std::uint16_t> tokens(10);
  std::iota(tokens.begin(), tokens.end(), std::uint16_t{1});
  write_file(folder.path("a.bin"), bytes_of(tokens));
  const layout::DatasetPtr dataset = layout::open_megatron({local(folder.path("a"))});
  const SourcePtr windows = layout::make_windows(dataset, 3, 1);
  expect_parts(*windows, Parts::Records, {"a.bin"});
  expect_parts(*windows, kSpansAndRecords, {"a.bin", "a.idx"});
  expect_parts(*windows, kEntriesAlone, {"a.idx"});
  const SourcePtr documents = layout::make_documents(dataset);
  expect_parts(*documents, Parts::Records, {"a.bin", "a.idx"});
  expect_parts(*documents, kEntriesAlone, {"a.idx"});
}

}  // namespace
}  // namespace penstock::testing
