// Rows go through their rounds, whatever their stores do, and end once.
#include "core/engine/row_reader.h"

#include "tests/native/core/engine/rows_fixture.h"

#include <stdexcept>

namespace penstock::testing {
namespace {

using namespace std::chrono_literals;
using Part = RowReader::Part;

TEST(RowReader, RaggedRowsAreMeasuredFirstAndReadAfterThatOrPlacedTogetherInAGroup) {
  for (const unsigned late : {0U, 1U}) {
    Rows rows(late);
    rows.begin_ragged(40);
    const auto reader = rows.reader();
    rows.read_all(*reader, Part::Measure);
    rows.expect_ended();
    for (std::uint64_t i = 0; i < 40; ++i) {
      EXPECT_EQ(rows.batch->rows[i].length, i % 7);
      EXPECT_TRUE(rows.batch->rows[i].spans.empty()) << "it is not finished";
    }
    BatchWork(*rows.batch).measure();
    rows.place();
    rows.read_all(*reader, Part::AfterMeasure);
    rows.expect_ended(2);
    Rows group(late);
    group.begin_ragged(40);
    group.read_group(*reader);
    EXPECT_EQ(group.groups_placed, 1);
    for (std::uint64_t i = 0; i < 40; ++i) {
      EXPECT_TRUE(rows.is_whole(i) && rows.has_bytes(i, 0, i * 50, i % 7)) << i;
      EXPECT_TRUE(group.has_bytes(i, 0, i * 50, i % 7)) << i;
    }
  }
}

TEST(RowReader, ARowEndsOnceWithAllItsBytesAndAnErrorEndsItsRowAlone) {
  for (const unsigned late : {0U, 1U}) {
    for (const bool by_plan : {false, true}) {
      Rows rows(late);
      rows.behaviours[0]->failures = by_plan ? 0 : 1;
      rows.behaviours[0]->fail_offset = 7 * 30;
      rows.begin(12, 100, [&](Row& row, unsigned round, Reads& out) {
        if (by_plan && row.index == 7 && round == 2) throw std::runtime_error("no such round");
        return plan_rounds(rows.files[0], row, round, out);
      });
      rows.read_all(*rows.reader());
      rows.expect_ended();
      for (std::uint64_t i = 0; i < 100; ++i) {
        EXPECT_EQ(rows.is_whole(i), i != 7) << i;
        EXPECT_TRUE(i == 7 || rows.has_bytes(i, 0, i * 30, 12)) << i;
      }
      EXPECT_TRUE(rows.errors[7]);
      EXPECT_TRUE(rows.batch->rows[7].spans.empty());
    }
  }
}

TEST(RowReader, AStoreWithoutAChannelOrOneThatRefusesFailsTheRowsItWasGivenAndNoOthers) {
  for (const bool refuses : {false, true}) {
    Rows rows;
    rows.behaviours[1]->unopened = refuses ? 0 : 3;  // for rows 1, 3 and 5
    rows.behaviours[1]->refused = refuses ? 1 : 0;   // all rows at once
    rows.begin(12, 12, [&](Row& row, unsigned, Reads& out) {
      ScriptedSource::read(rows.files[row.index % 2], row.index * 12, 12, row.records, out);
      return false;
    });
    const auto reader = rows.reader();
    rows.read_all(*reader);
    rows.expect_ended();
    for (std::uint64_t i = 0; i < 12; ++i) EXPECT_EQ(rows.is_whole(i), i % 2 == 0 || (!refuses && i > 5)) << i;
    if (refuses) {
      EXPECT_THROW(std::rethrow_exception(rows.errors[1]), std::bad_alloc);
    }
    rows.begin_again();
    rows.read_all(*reader);
    for (std::uint64_t i = 0; i < 12; ++i) EXPECT_TRUE(rows.is_whole(i)) << "the next time it does not";
  }
}

TEST(RowReader, RowsOfACancelledBatchEndWithoutMoreRounds) {
  for (const unsigned late : {0U, 1U}) {
    Rows rows(late);
    rows.begin_rounds(8);
    const auto reader = rows.reader();
    rows.start_all(*reader);
    rows.batch->cancelled = true;
    Rows::finish(*reader);
    rows.expect_ended();
    for (std::uint64_t i = 0; i < 8; ++i) {
      EXPECT_FALSE(rows.errors[i]);
      EXPECT_EQ(rows.batch->rows[i].spans.size(), 0U);
      EXPECT_EQ(rows.batch->rows[i].round, i % 3 == 1 ? i % 4 + 1 : 1) << "no round after the first that reads";
    }
  }
}

TEST(RowReader, RowsAndGroupsOfSeveralStoresAreUnderWayTogether) {
  for (unsigned late = 0; late < 8; ++late) {
    for (const std::uint64_t count : {1, 100}) {
      Rows group(late);
      Rows rows(late);
      group.begin_stores(40);
      rows.begin_stores(count);
      const auto reader = rows.reader();
      group.start_group(*reader);
      rows.read_all(*reader);
      rows.expect_ended();
      EXPECT_EQ(group.groups_done, 1);
      for (std::uint64_t i = 0; i < 40; ++i) {
        EXPECT_TRUE(group.has_bytes_of_stores(i)) << i;
        EXPECT_FALSE(group.batch->rows[i].error);
      }
      for (std::uint64_t i = 0; i < count; ++i) EXPECT_TRUE(rows.is_whole(i) && rows.has_bytes_of_stores(i)) << i;
      EXPECT_EQ(rows.behaviours[0]->channels, 1U);
    }
  }
}

TEST(RowReader, WithoutWaitingRowsThatAreAtHandEndAndOthersAreToldOfInAnyRound) {
  Rows rows;
  rows.behaviours[0]->miss_every = 5;
  rows.behaviours[1]->miss_every = 1'000'000;
  rows.behaviours[2]->nothing_at_hand = true;
  rows.begin(12, 60, [&](Row& row, unsigned round, Reads& out) {
    if (row.index % 2 == 0) return plan_rounds(rows.files[0], row, round, out);
    ScriptedSource::read(rows.files[1 + round], row.index * 30, 6, row.records + 6 * round, out);
    return round == 0;
  });
  const auto reader = rows.reader(ChannelMode::NonBlocking);
  rows.start_all(*reader);
  reader->pump(0ns);
  EXPECT_TRUE(reader->is_idle()) << "nothing is waited for";
  rows.expect_ended();
  std::uint64_t missed = 0;
  for (std::uint64_t i = 0; i < 60; ++i) {
    EXPECT_FALSE(rows.errors[i]);
    EXPECT_EQ(rows.is_whole(i), !rows.not_at_hand[i]) << i << ": what is not there has no spans";
    EXPECT_TRUE(rows.not_at_hand[i] || (i % 2 == 0 && rows.has_bytes(i, 0, i * 30, 12))) << i;
    missed += i % 2 == 0 && rows.not_at_hand[i] ? 1 : 0;
  }
  EXPECT_EQ(missed, rows.behaviours[0]->asked - rows.behaviours[0]->hits) << "each miss ends its row";
  EXPECT_GT(missed, 3U);
}

TEST(RowReader, IsBusyWithAsManyReadsAsItsStoreWants) {
  Rows rows(1);
  rows.begin_rounds(64);  // as a late store wants
  const auto reader = rows.reader();
  for (std::uint64_t i = 0; i < 64; ++i) {
    EXPECT_FALSE(reader->is_busy()) << i;
    reader->start(rows.batch, i, Part::Whole);
  }
  EXPECT_TRUE(reader->is_busy());
  reader->pump(0ns);
  EXPECT_TRUE(reader->is_busy()) << "submitted is not read";
  Rows::finish(*reader);
  EXPECT_FALSE(reader->is_busy());
}

TEST(RowReader, WaitsForItsReadsBeforeItGoesAndTellsNobody) {
  Rows rows(1);
  rows.begin_rounds(20);
  auto reader = rows.reader();
  rows.start_all(*reader);
  reader->pump(0ns);
  reader.reset();
  rows.expect_ended(0);
  EXPECT_EQ(rows.batch.use_count(), 1) << "nobody holds the batch any more";
}

}  // namespace
}  // namespace penstock::testing
