// Windows of the compact layout against the model.
#include "tests/native/layout/model.h"

#include "layout/dataset/format.h"
#include "layout/reading/kept_blocks.h"
#include "layout/windows/windows.h"

#include <gtest/gtest.h>

namespace penstock::testing {
namespace {

using layout::SpanKind;

ModelShard shard(std::vector<std::uint64_t> lengths) {
  ModelShard result;
  for (std::uint64_t i = 0; i < lengths.size(); ++i) {
    result.spans.push_back({lengths[i], "entry " + std::to_string(i) + std::string(i % 3, '!')});
  }
  return result;
}

TEST(CompactTest, EveryWindowHasExactlyItsSpansAndEntries) {
  expect_all_windows(Model(SpanKind::Compact, {shard({3, 1, 4}), shard({1, 5})}));
}

TEST(CompactTest, EmptySpansAndEmptyShardsCoverNothing) {
  expect_all_windows(Model(SpanKind::Compact, {shard({0, 0, 2, 0, 0, 3, 0}), shard({}), shard({0, 0}), shard({0, 4})}));
}

TEST(CompactTest, EntriesMayBeEmpty) {
  expect_all_windows(Model(SpanKind::Compact, {ModelShard{{{2, ""}, {0, ""}, {3, "x"}, {2, ""}}, {}, {}}}));
}

TEST(CompactTest, ASpanLongerThanAWindowKeepsItsOffset) {
  const Model model(SpanKind::Compact, {shard({10})});
  const auto source = layout::make_windows(model.dataset(), 3, 0);
  Driven driven;
  drive(*source, 2, driven);
  ASSERT_EQ(driven.row.spans.size(), 1U);
  const Span& span = driven.row.spans[0];
  EXPECT_EQ(span.offset, 6);
  EXPECT_FALSE(span.begins);
  EXPECT_FALSE(span.ends);
}

// Around the directory's steps: spans that begin, end and lie across multiples of 4096.
TEST(CompactTest, WindowsAroundTheDirectorysStepsFindTheirSpans) {
  const std::uint64_t step = layout::kDirectoryStride;
  const Model model(SpanKind::Compact, {shard({step - 1, 1, 0, 1, step - 2, 3, 0, 2 * step, 7}), shard({step, step})});
  for (const std::uint64_t window : {step - 1, step, step + 1, step / 2, 3 * step + 5, std::uint64_t{700}}) {
    const auto source = layout::make_windows(model.dataset(), window, 1);
    for (std::uint64_t i = 0; i < source->info().size; ++i) {
      Driven driven;
      drive(*source, i, driven);
      const std::vector<Span> wanted = model.spans(i * window, i * window + window + 1);
      ASSERT_EQ(driven.row.spans.size(), wanted.size()) << "window " << i << " of " << window;
      for (std::size_t k = 0; k < wanted.size(); ++k) {
        const Span& span = driven.row.spans[k];
        ASSERT_EQ(std::tie(span.start, span.stop, span.begins, span.ends, span.offset, span.entry),
                  std::tie(wanted[k].start, wanted[k].stop, wanted[k].begins, wanted[k].ends, wanted[k].offset,
                           wanted[k].entry));
      }
    }
  }
}

TEST(CompactTest, WhereNothingIsKeptAWindowCostsOneRangeOfEachFileAndOnlyItsOwnEntries) {
  std::vector<std::uint64_t> lengths(3000, 10);
  const Model model(SpanKind::Compact, {shard(lengths)});
  const auto source = layout::make_windows(model.dataset(), 20, 0);
  for (std::uint64_t i = 0; i < source->info().size; ++i) {
    Driven driven;
    drive(*source, i, driven);
    ASSERT_EQ(driven.reads.size(), 4U);
    ASSERT_EQ(driven.rounds, 3U);
    std::uint64_t entry_bytes = 0;
    for (const Span& span : driven.row.spans) entry_bytes += span.raw_bytes;
    ASSERT_EQ(driven.row.spans.size(), 2U);
    ASSERT_EQ(driven.bytes_read("metadata.bin"), entry_bytes);
    // A step has 410 spans of 10 records; the index is read around one step, or two where a window crosses.
    ASSERT_LE(driven.bytes_read("metadata.index"), 2 * 412 * sizeof(layout::CompactIndexEntry));
  }
}

TEST(CompactTest, WhatWasReadOfTheMetadataIsNotReadAgain) {
  std::vector<std::uint64_t> lengths(3000, 10);
  const Model model(SpanKind::Compact, {shard(lengths)});
  const layout::Shard& files = model.dataset()->shards[0];
  const auto source = layout::make_windows(model.dataset(), 20, 0);
  const std::uint64_t bytes = source->info().keeps->grant(1 << 20);
  EXPECT_EQ(bytes, layout::KeptBlocks::most_bytes(files.directory) + layout::KeptBlocks::most_bytes(files.index) +
                       layout::KeptBlocks::most_bytes(files.data));
  EXPECT_EQ(source->info().keeps->grant(0), bytes) << "whoever asks first decides";
  for (const int pass : {1, 2}) {
    std::uint64_t directory = 0;
    std::uint64_t index = 0;
    std::uint64_t data = 0;
    for (std::uint64_t i = 0; i < source->info().size; ++i) {
      Driven driven;
      drive(*source, i, driven);
      expect_row(model, *source, driven, 20 * i, 20 * i + 20);
      directory += driven.bytes_read("metadata.directory");
      index += driven.bytes_read("metadata.index");
      data += driven.bytes_read("metadata.bin");
      if (pass == 1) continue;
      ASSERT_EQ(driven.reads.size(), 1U);
      ASSERT_EQ(driven.rounds, 1U);
    }
    EXPECT_EQ(directory, pass == 1 ? files.directory.bytes : 0);
    EXPECT_EQ(index, pass == 1 ? files.index.bytes : 0);
    EXPECT_EQ(data, pass == 1 ? files.data.bytes : 0);
  }
}

// Room for the directory, then for the index, then for the entries.
TEST(CompactTest, WhatDoesNotFitIsReadEachTime) {
  const Model model(SpanKind::Compact, {shard(std::vector<std::uint64_t>(3000, 10))});
  const layout::Shard& files = model.dataset()->shards[0];
  const std::uint64_t directory = layout::KeptBlocks::most_bytes(files.directory);
  const std::uint64_t both = directory + layout::KeptBlocks::most_bytes(files.index);
  const std::uint64_t all = both + layout::KeptBlocks::most_bytes(files.data);
  const std::pair<std::uint64_t, std::size_t> rooms[] = {
      {0, 4}, {directory - 1, 4}, {both - 1, 3}, {all - 1, 2}, {all, 1}};
  for (const auto& [room, reads] : rooms) {
    const auto source = layout::make_windows(model.dataset(), 20, 0);
    EXPECT_LE(source->info().keeps->grant(room), room);
    for (const std::uint64_t i : {700, 700, 701}) {
      Driven driven;
      drive(*source, i, driven);
      expect_row(model, *source, driven, 20 * i, 20 * i + 20);
      if (i == 701) {
        EXPECT_EQ(driven.reads.size(), reads) << room;
      }
    }
  }
}

// Three documents of the window among 300,000 empty ones, which a window does not deliver; others around it.
TEST(CompactTest, EmptyDocumentsAroundAWindowCostNeitherTheirIndexNorTheirEntries) {
  ModelShard many;
  const auto empty = [&] { many.spans.insert(many.spans.end(), 100'000, {0, "an entry of an empty document"}); };
  for (const std::uint64_t records : {5, 3, 4, 2000, 6}) {
    empty();
    many.spans.push_back({records, "entry of " + std::to_string(records)});
  }
  empty();
  const Model model(SpanKind::Compact, {std::move(many)});
  const std::uint64_t all = model.dataset()->shards[0].index.bytes;
  for (const std::uint64_t window : {8, 10, 1006}) {
    const auto source = layout::make_windows(model.dataset(), window, 1);
    for (std::uint64_t i = 0; i < source->info().size; ++i) {
      Driven driven;
      drive(*source, i, driven);
      expect_row(model, *source, driven, i * window, i * window + window + 1);
      ASSERT_LT(driven.bytes_read("metadata.index"), all / 20) << "window " << i << " of " << window;
      ASSERT_LT(driven.bytes_read("metadata.bin"), 8192U) << "window " << i << " of " << window;
    }
  }
}

// Documents of one record, each after more empty ones than fit into a page: the search goes on from span to span.
TEST(CompactTest, ASearchInPagesFindsWhatReadingAllFinds) {
  ModelShard many;
  for (std::uint64_t i = 0; i < 40; ++i) {
    many.spans.insert(many.spans.end(), i % 3 == 0 ? 3000 : i % 7, {0, "x"});
    many.spans.push_back({1 + i % 2, "entry " + std::to_string(i)});
  }
  expect_all_windows(Model(SpanKind::Compact, {std::move(many)}));
}

}  // namespace
}  // namespace penstock::testing
