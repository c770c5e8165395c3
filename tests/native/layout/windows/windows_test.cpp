// Windows of every layout against the model, what they read for that and what they keep; and what the views refuse.
#include "layout/windows/windows.h"

#include "core/base/error.h"
#include "layout/dataset/format.h"
#include "layout/reading/kept_blocks.h"
#include "layout/reading/reads.h"
#include "tests/native/layout/model.h"

#include <gtest/gtest.h>

#include <array>
#include <random>

namespace penstock::testing {
namespace {

using layout::SpanKind;

ModelShard tokens(std::uint64_t records) {
  return {{{records, ""}}, {}, {}};
}

ModelShard ids_of(std::vector<std::uint32_t> ids, std::uint32_t entries, std::uint64_t entry_bytes = 3) {
  ModelShard result{{}, std::move(ids), {}};
  for (std::uint32_t i = 0; i < entries; ++i) {
    result.entries.push_back(std::to_string(i) + std::string(entry_bytes + i % 2, 'x'));
  }
  return result;
}

TEST(WindowsTest, EveryWindowCrossesShardsAsIfThereWereNone) {
  expect_all_windows(Model(SpanKind::None, {tokens(5), tokens(0), tokens(1), tokens(7), tokens(0)}));
  expect_all_windows(Model(SpanKind::None, {tokens(0), tokens(0), tokens(3)}));
}

TEST(WindowsTest, EveryWindowHasExactlyItsSpansAndEntries) {
  expect_all_windows(Model(SpanKind::Compact, {shard_of({3, 1, 4}), shard_of({1, 5})}));
  expect_all_windows(
      Model(SpanKind::Compact, {shard_of({0, 0, 2, 0, 0, 3, 0}), {}, shard_of({0, 0}), shard_of({0, 4})}));
  expect_all_windows(Model(SpanKind::Compact, {ModelShard{{{2, ""}, {0, ""}, {3, "x"}, {2, ""}}, {}, {}}}));
}

TEST(WindowsTest, EveryWindowHasExactlyItsRunsOfIds) {
  for (const std::uint64_t token_bytes : {2, 4}) {
    expect_all_windows(Model(SpanKind::Ids, {ids_of({0, 0, 1, 1, 1, 2}, 3), ids_of({0, 1, 1}, 2)}, token_bytes));
  }
  expect_all_windows(Model(SpanKind::Ids, {ids_of({1, 0, 1, 0, 0, 1, 2, 2, 0}, 3)}));
  // A run ends with its shard even if the next one begins with the same id.
  expect_all_windows(Model(SpanKind::Ids, {ids_of({0, 0}, 1), ids_of({}, 0), ids_of({0, 0, 0}, 2), ids_of({0}, 1)}));
}

// Records of 8 bytes are compared several at once: a run that begins at any place among them is seen.
TEST(WindowsTest, ARunThatBeginsAnywhereInAWindowIsFound) {
  constexpr std::uint64_t kRecords = 135;
  for (std::uint32_t place = 1; place < kRecords; ++place) {
    std::vector<std::uint32_t> ids(kRecords, 0);
    std::fill(ids.begin() + place, ids.end(), 1);
    const Model model(SpanKind::Ids, {ids_of(ids, 2)}, 4);
    for (const std::uint64_t window : {kRecords, kRecords - 1, std::uint64_t{67}}) expect_windows(model, window, 0);
  }
}

// Around the directory's steps: spans that begin, end and lie across multiples of 4096.
TEST(WindowsTest, WindowsAroundTheDirectorysStepsFindTheirSpans) {
  const std::uint64_t step = layout::kDirectoryStride;
  const Model model(SpanKind::Compact,
                    {shard_of({step - 1, 1, 0, 1, step - 2, 3, 0, 2 * step, 7}), shard_of({step, step})});
  for (const std::uint64_t window : {step - 1, step, step + 1, step / 2, 3 * step + 5, std::uint64_t{700}}) {
    expect_windows(model, window, 1);
  }
}

// Documents of one record, each after more empty ones than fit into a page: the search goes on from span to span.
TEST(WindowsTest, ASearchInPagesFindsWhatReadingAllFinds) {
  ModelShard many;
  for (std::uint64_t i = 0; i < 40; ++i) {
    many.spans.insert(many.spans.end(), i % 3 == 0 ? 3000 : i % 7, {0, "x"});
    many.spans.push_back({1 + i % 2, "entry " + std::to_string(i)});
  }
  expect_all_windows(Model(SpanKind::Compact, {std::move(many)}));
}

// ---- what a window costs

TEST(WindowsTest, AWindowTakesOneRangeOfEachFileItNeeds) {
  const Model stream(SpanKind::None, {tokens(5), tokens(0), tokens(1), tokens(7)});
  const Driven crossing = driven(*layout::make_windows(stream.dataset(), 12, 1), 0);
  EXPECT_EQ(crossing.reads.size(), 3U) << "one a shard";
  EXPECT_EQ(crossing.rounds, 1U);
  const Model model(SpanKind::Compact, {shard_of(std::vector<std::uint64_t>(3000, 10))});
  const auto source = layout::make_windows(model.dataset(), 20, 0);
  for (std::uint64_t i = 0; i < source->info().size; ++i) {
    const Driven row = driven(*source, i);
    ASSERT_EQ(row.reads.size(), 4U);
    ASSERT_EQ(row.rounds, 3U);
    ASSERT_EQ(row.row.spans.size(), 2U);
    ASSERT_EQ(row.bytes_read("metadata.bin"), row.row.spans[0].raw_bytes + row.row.spans[1].raw_bytes);
    // A step has 410 spans of 10 records; the index is read around one step, or two where a window crosses.
    ASSERT_LE(row.bytes_read("metadata.index"), 2 * 412 * sizeof(layout::CompactIndexEntry));
  }
}

TEST(WindowsTest, IdsThatAreNeighboursAreReadTogetherAndOthersApart) {
  const Model apart(SpanKind::Ids, {ids_of({5999, 0, 3000, 0, 2999, 6000}, 6001, 20)});
  expect_all_windows(apart);
  // 0, 2999 with 3000, 5999 with 6000: three places.
  EXPECT_EQ(driven(*layout::make_windows(apart.dataset(), 6, 0), 0).reads_of("metadata.index"), 3U);
  std::vector<std::uint32_t> ids;
  for (std::uint32_t i = 0; i < 600; ++i) ids.push_back(i / 2);
  const Model model(SpanKind::Ids, {ids_of(ids, 300, 50)});
  const Driven row = driven(*layout::make_windows(model.dataset(), 100, 0), 3);
  EXPECT_EQ(row.reads.size(), 3U);
  EXPECT_EQ(row.bytes_read("metadata.index"), 51 * 8U);
}

// Whatever the ids: each read is within the stated multiple of the bytes in it that are needed, and all of those are
// read exactly once.
TEST(WindowsTest, AMergedReadNeverExceedsTheStatedMultipleOfWhatIsNeeded) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 50; ++round) {
    std::vector<layout::Wanted> wanted;
    std::uint64_t at = 0;
    for (int i = 0; i < 200; ++i) {
      at += random() % 11 == 0 ? random() % 20000 : random() % 50;
      const std::uint64_t end = at + random() % 300;
      wanted.push_back({at, end, nullptr});
      at = end;
    }
    Row row;
    Reads reads;
    layout::plan_merged(row, {"data", at}, wanted, reads);
    for (const Read& read : reads) {
      std::uint64_t needed = 0;
      for (const layout::Wanted& range : wanted) {
        const bool inside = range.begin >= read.offset && range.end <= read.offset + read.size;
        if (inside && range.bytes == read.destination + (range.begin - read.offset)) needed += range.end - range.begin;
      }
      ASSERT_LE(read.size, layout::kMaxReadAmplification * needed + layout::kReadSlackBytes);
      ASSERT_GT(needed, 0U);
    }
    for (const layout::Wanted& range : wanted) ASSERT_NE(range.bytes, nullptr);
  }
  std::vector<layout::Wanted> overlapping;
  for (std::uint64_t i = 0; i < 10000; ++i) overlapping.push_back({8 * i, 8 * i + 16, nullptr});
  Row row;
  Reads reads;
  layout::plan_merged(row, {"index", 8 * 10001}, overlapping, reads);
  ASSERT_EQ(reads.size(), 1U) << "what overlaps counts once";
  EXPECT_EQ(reads[0].size, 8 * 10001U);
}

// Three documents of the window among 300,000 empty ones, which a window does not deliver; others around it.
TEST(WindowsTest, EmptyDocumentsAroundAWindowCostNeitherTheirIndexNorTheirEntries) {
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
      const Driven row = driven(*source, i);
      expect_row(model, *source, row, i * window, i * window + window + 1);
      ASSERT_LT(row.bytes_read("metadata.index"), all / 20) << "window " << i << " of " << window;
      ASSERT_LT(row.bytes_read("metadata.bin"), 8192U) << "window " << i << " of " << window;
    }
  }
}

// ---- what is kept

class KeptMetadata : public ::testing::Test {
 protected:
  const Model model_{SpanKind::Compact, {shard_of(std::vector<std::uint64_t>(3000, 10))}};
  const layout::Shard& files_ = model_.dataset()->shards[0];
  const std::uint64_t directory_ = layout::KeptBlocks::most_bytes(files_.directory);
  const std::uint64_t both_ = directory_ + layout::KeptBlocks::most_bytes(files_.index);
  const std::uint64_t all_ = both_ + layout::KeptBlocks::most_bytes(files_.data);
};

TEST_F(KeptMetadata, WhatWasReadIsNotReadAgain) {
  const auto source = layout::make_windows(model_.dataset(), 20, 0);
  EXPECT_EQ(source->info().keeps->grant(1 << 20), all_);
  EXPECT_EQ(source->info().keeps->grant(0), all_) << "whoever asks first decides";
  for (const int pass : {1, 2}) {
    std::uint64_t directory = 0;
    std::uint64_t index = 0;
    std::uint64_t data = 0;
    for (std::uint64_t i = 0; i < source->info().size; ++i) {
      const Driven row = driven(*source, i);
      expect_row(model_, *source, row, 20 * i, 20 * i + 20);
      directory += row.bytes_read("metadata.directory");
      index += row.bytes_read("metadata.index");
      data += row.bytes_read("metadata.bin");
      if (pass == 1) continue;
      ASSERT_EQ(row.reads.size(), 1U);
      ASSERT_EQ(row.rounds, 1U);
    }
    EXPECT_EQ(directory, pass == 1 ? files_.directory.bytes : 0);
    EXPECT_EQ(index, pass == 1 ? files_.index.bytes : 0);
    EXPECT_EQ(data, pass == 1 ? files_.data.bytes : 0);
  }
}

TEST_F(KeptMetadata, WhatDoesNotFitIsReadEachTime) {
  const std::pair<std::uint64_t, std::size_t> rooms[] = {
      {0, 4}, {directory_ - 1, 4}, {both_ - 1, 3}, {all_ - 1, 2}, {all_, 1}};
  for (const auto& [room, reads] : rooms) {
    const auto source = layout::make_windows(model_.dataset(), 20, 0);
    EXPECT_LE(source->info().keeps->grant(room), room);
    for (const std::uint64_t i : {700, 700, 701}) {
      const Driven row = driven(*source, i);
      expect_row(model_, *source, row, 20 * i, 20 * i + 20);
      EXPECT_TRUE(i != 701 || row.reads.size() == reads) << room << ": " << row.reads.size();
    }
  }
}

TEST(KeptBlocks, WhatIsKeptOfAFileOrOfARangeIsFound) {
  const File file("nothing", 5000);
  layout::KeptBlocks whole(file);
  layout::KeptBlocks range(10'000, 15'000);  // of blocks 2 and 3
  const std::vector<std::byte> bytes(8192, std::byte{7});
  for (const auto& [kept, begin, at] : {std::tuple(&whole, 0U, 4090U), {&range, 8192U, 12'280U}}) {
    std::array<std::byte, 16> room{};
    EXPECT_EQ(kept->find(at, 16, room.data()), nullptr);
    kept->keep(begin, std::span(bytes).first(kept == &whole ? 5000 : 8192));
    ASSERT_NE(kept->find(at, 16, room.data()), nullptr);
    EXPECT_EQ(room[15], std::byte{7});
  }
  std::array<std::byte, layout::KeptBlocks::kBlock> block{};
  EXPECT_TRUE(range.copy_block(12'288, 15'000, block.data()));
  EXPECT_EQ(block[2711], std::byte{7});
  EXPECT_EQ(block[2712], std::byte{0});
}

// ---- refusals

TEST(WindowsTest, WindowsThatTheStreamDoesNotHoldAreRefused) {
  const Model model(SpanKind::None, {tokens(5), tokens(6)});
  const auto opening = [&](std::uint64_t window, std::uint64_t lookahead) {
    return [&, window, lookahead] { layout::make_windows(model.dataset(), window, lookahead); };
  };
  expect_error(opening(11, 1), ErrorKind::InvalidArgument, "window 11 + lookahead 1");
  expect_error(opening(11, 1), ErrorKind::InvalidArgument, "11 records");
  expect_error(opening(0, 0), ErrorKind::InvalidArgument, "");
  expect_error(opening(UINT64_MAX, 1), ErrorKind::InvalidArgument, "");
}

TEST(WindowsTest, FilesAndIdsThatDoNotFitAreCorrupt) {
  const Model model(SpanKind::None, {tokens(5)});
  layout::Dataset broken = *model.dataset();
  for (const std::uint64_t records : {std::uint64_t{6}, UINT64_MAX}) {
    broken.shards[0].records = records;
    expect_error([&] { broken.finish(); }, ErrorKind::Corruption, "");
  }
  const Model ids(SpanKind::Ids, {ids_of({0, 2, 1}, 2)});
  EXPECT_THROW(driven(*layout::make_windows(ids.dataset(), 2, 0), 0), Error);
}

}  // namespace
}  // namespace penstock::testing
