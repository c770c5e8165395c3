// Windows of the ids layout against the model; how far apart reads are merged.
#include "core/base/error.h"
#include "layout/reading/reads.h"
#include "tests/native/layout/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace penstock::testing {
namespace {

using layout::SpanKind;

ModelShard shard(std::vector<std::uint32_t> ids, std::uint32_t entries, std::uint64_t entry_bytes = 3) {
  ModelShard result{{}, std::move(ids), {}};
  for (std::uint32_t i = 0; i < entries; ++i) {
    result.entries.push_back(std::to_string(i) + std::string(entry_bytes + i % 2, 'x'));
  }
  return result;
}

TEST(IdsTest, EveryWindowHasExactlyItsRuns) {
  expect_all_windows(Model(SpanKind::Ids, {shard({0, 0, 1, 1, 1, 2}, 3), shard({0, 1, 1}, 2)}));
}

// Records of 8 bytes are compared several at once: a run that begins at any place among them is seen.
TEST(IdsTest, ARunThatBeginsAnywhereInAWindowIsFound) {
  expect_all_windows(Model(SpanKind::Ids, {shard({0, 0, 1, 1, 1, 2}, 3), shard({0, 1, 1}, 2)}, 4));
  constexpr std::uint64_t kRecords = 135;
  for (std::uint32_t place = 1; place < kRecords; ++place) {
    std::vector<std::uint32_t> ids(kRecords, 0);
    std::fill(ids.begin() + place, ids.end(), 1);
    const Model model(SpanKind::Ids, {shard(ids, 2)}, 4);
    for (const std::uint64_t window : {kRecords, kRecords - 1, std::uint64_t{67}}) {
      const auto source = layout::make_windows(model.dataset(), window, 0);
      for (std::uint64_t i = 0; i < source->info().size; ++i) {
        Driven driven;
        drive(*source, i, driven);
        expect_row(model, *source, driven, i * window, i * window + window);
      }
    }
  }
}

TEST(IdsTest, RepeatedAndInterleavedIdsAreRunsOfTheirOwn) {
  expect_all_windows(Model(SpanKind::Ids, {shard({1, 0, 1, 0, 0, 1, 2, 2, 0}, 3)}));
}

TEST(IdsTest, ARunEndsAtItsShardsEdgeEvenIfTheNextShardBeginsWithTheSameId) {
  expect_all_windows(Model(SpanKind::Ids, {shard({0, 0}, 1), shard({}, 0), shard({0, 0, 0}, 2), shard({0}, 1)}));
}

TEST(IdsTest, FarApartIdsAreFoundAndReadApart) {
  const Model model(SpanKind::Ids, {shard({5999, 0, 3000, 0, 2999, 6000}, 6001, 20)});
  expect_all_windows(model);
  const auto source = layout::make_windows(model.dataset(), 6, 0);
  Driven driven;
  drive(*source, 0, driven);
  // 0, 2999 with 3000, 5999 with 6000: three places.
  std::size_t index_reads = 0;
  for (const Read& read : driven.reads) index_reads += read.file->path().ends_with("metadata.index") ? 1 : 0;
  EXPECT_EQ(index_reads, 3U);
}

TEST(IdsTest, ConsecutiveIdsAreOneRangeOfEachFile) {
  std::vector<std::uint32_t> ids;
  for (std::uint32_t i = 0; i < 600; ++i) ids.push_back(i / 2);
  const Model model(SpanKind::Ids, {shard(ids, 300, 50)});
  const auto source = layout::make_windows(model.dataset(), 100, 0);
  Driven driven;
  drive(*source, 3, driven);
  EXPECT_EQ(driven.reads.size(), 3U);
  EXPECT_EQ(driven.bytes_read("metadata.index"), 51 * 8U);
}

// Whatever the ids: each read is within the stated multiple of the bytes in it that are needed, and all of those are
// read exactly once.
TEST(IdsTest, AMergedReadNeverExceedsTheStatedMultipleOfWhatIsNeeded) {
  std::uint64_t state = 1;
  for (int round = 0; round < 50; ++round) {
    std::vector<layout::Wanted> wanted;
    std::uint64_t at = 0;
    for (int i = 0; i < 200; ++i) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      at += (state >> 33) % 11 == 0 ? (state >> 40) % 20000 : (state >> 40) % 50;
      const std::uint64_t end = at + (state >> 50) % 300;
      wanted.push_back({at, end, nullptr});
      at = end;
    }
    const File file{"data", at};
    Row row;
    Reads reads;
    layout::plan_merged(row, file, wanted, reads);
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
}

TEST(IdsTest, OverlappingNeighboursCountOnceAndAreMerged) {
  std::vector<layout::Wanted> wanted;
  for (std::uint64_t i = 0; i < 10000; ++i) wanted.push_back({8 * i, 8 * i + 16, nullptr});
  Row row;
  Reads reads;
  layout::plan_merged(row, {"index", 8 * 10001}, wanted, reads);
  ASSERT_EQ(reads.size(), 1U);
  EXPECT_EQ(reads[0].size, 8 * 10001U);
}

TEST(IdsTest, AnIdBeyondTheEntriesIsCorrupt) {
  const Model model(SpanKind::Ids, {shard({0, 2, 1}, 2)});
  const auto source = layout::make_windows(model.dataset(), 2, 0);
  Driven driven;
  EXPECT_THROW(drive(*source, 0, driven), Error);
}

}  // namespace
}  // namespace penstock::testing
