// Parts of a row: what is not wanted is not read, what is wanted is the same as with all parts.
#include "core/base/error.h"
#include "tests/native/layout/model.h"

#include <gtest/gtest.h>

#include <set>

namespace penstock::testing {
namespace {

using layout::SpanKind;
using SourcePtr = std::shared_ptr<const Source>;

constexpr Parts kSpansAndRecords = Parts::Records | Parts::Spans;
constexpr Parts kEntriesAlone = Parts::Entries | Parts::Spans;

/// The names of files read, without folders.
std::set<std::string> files_read(const Driven& row) {
  std::set<std::string> names;
  for (const Read& read : row.reads) names.insert(std::filesystem::path(read.file->path()).filename().string());
  return names;
}

void expect_spans(const Driven& all, const Driven& some, Parts wanted) {
  ASSERT_EQ(some.row.spans.size(), has_spans(wanted) ? all.row.spans.size() : 0);
  for (std::size_t i = 0; i < some.row.spans.size(); ++i) {
    const Span& span = some.row.spans[i];
    ASSERT_EQ(place_of(all.row.spans[i]), place_of(span));
    ASSERT_EQ(entry_of(span), has(wanted, Parts::Entries) ? entry_of(all.row.spans[i]) : "");
    ASSERT_TRUE(has(wanted, Parts::Entries) || span.raw == nullptr);
  }
}

/// Each observation with `wanted` is that part of it with all parts, and of files only those named are read.
void expect_parts(const Source& source, Parts wanted, const std::set<std::string>& files) {
  std::set<std::string> read;
  for (std::uint64_t i = 0; i < source.info().size; ++i) {
    SCOPED_TRACE(::testing::Message() << "observation " << i << ", parts " << static_cast<unsigned>(wanted));
    const Driven all = driven(source, i);
    const Driven some = driven(source, i, wanted);
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

TEST(PartsTest, OfFilesOnlyThoseOfTheWantedPartsAreRead) {
  const Model compact(SpanKind::Compact, {{{{3, "aa"}, {0, "e"}, {5, "b"}, {1, "ccc"}, {4095, "d"}, {2, ""}}, {}, {}},
                                          {{{7, "second"}}, {}, {}}});
  for (const std::uint64_t window : {4, 4110}) {
    const SourcePtr source = layout::make_windows(compact.dataset(), window, 1);
    expect_parts(*source, Parts::Records, {"stream.bin"});
    expect_parts(*source, kSpansAndRecords, {"stream.bin", "metadata.directory", "metadata.index"});
    expect_parts(*source, Parts::Spans, {"metadata.directory", "metadata.index"});
    expect_parts(*source, kEntriesAlone, {"metadata.bin", "metadata.directory", "metadata.index"});
  }
  const SourcePtr documents = layout::make_documents(compact.dataset());  // which are to be found in any case
  expect_parts(*documents, Parts::Records, {"stream.bin", "metadata.index"});
  expect_parts(*documents, kSpansAndRecords, {"stream.bin", "metadata.index"});
  expect_parts(*documents, Parts::Spans, {"metadata.index"});
  expect_parts(*documents, kEntriesAlone, {"metadata.index", "metadata.bin"});
  const Model opaque(SpanKind::Opaque, {{{}, {}, {"a", "", "ccc"}}, {{}, {}, {"d"}}});
  const SourcePtr entries = layout::make_documents(opaque.dataset());
  expect_parts(*entries, kSpansAndRecords, {});
  expect_parts(*entries, kEntriesAlone, {"metadata.index", "metadata.bin"});
  const Model tokens(SpanKind::None, {{{{5, ""}}, {}, {}}, {{{4, ""}}, {}, {}}});
  const SourcePtr stream = layout::make_windows(tokens.dataset(), 3, 1);
  for (const Parts wanted : {Parts::All, kSpansAndRecords, Parts::Records}) {
    expect_parts(*stream, wanted, {"stream.bin"});
  }
  for (const Parts wanted : {kEntriesAlone, Parts::Entries, Parts::Spans}) expect_parts(*stream, wanted, {});
}

// The ids are in the records, so those are read for spans, into memory of the row's own where they are not wanted.
TEST(PartsTest, IdsWindowsReadTheirRecordsForTheSpans) {
  const Model model(SpanKind::Ids, {{{}, {0, 0, 1, 3, 3, 2, 1, 4}, {"aa", "", "b", "cccc", "d"}}, {{}, {0, 0}, {"x"}}});
  for (const std::uint64_t window : {1, 3, 9}) {
    const SourcePtr source = layout::make_windows(model.dataset(), window, 0);
    for (const Parts wanted : {Parts::Records, kSpansAndRecords, Parts::Spans}) {
      expect_parts(*source, wanted, {"stream.bin"});
    }
    expect_parts(*source, kEntriesAlone, {"stream.bin", "metadata.index", "metadata.bin"});
    // Without spans the records beside a window are not read either.
    EXPECT_EQ(driven(*source, 0, Parts::Records).bytes_read("stream.bin"), window * source->info().stored_record_bytes);
  }
}

TEST(PartsTest, WhatWasReadWithoutEntriesIsKeptForRowsWithThem) {
  const Model model(SpanKind::Compact, {{std::vector<ModelSpan>(3000, {10, "entry"}), {}, {}}});
  const SourcePtr source = layout::make_windows(model.dataset(), 20, 0);
  source->info().keeps->grant(1 << 20);
  EXPECT_GT(driven(*source, 700, kSpansAndRecords).bytes_read("metadata.index"), 0U);
  const Driven all = driven(*source, 700);
  EXPECT_EQ(files_read(all), (std::set<std::string>{"stream.bin", "metadata.bin"}));
  expect_row(model, *source, all, 14000, 14020);
}

}  // namespace
}  // namespace penstock::testing
