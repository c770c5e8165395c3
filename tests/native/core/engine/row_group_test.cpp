// Groups of rows go through their rounds in step, in as few requests as their places allow.
#include "core/engine/row_group.h"

#include "tests/native/core/engine/rows_fixture.h"

#include <stdexcept>

namespace penstock::testing {
namespace {

TEST(RowGroup, RowsThatShareBytesReadThemOnce) {
  Rows rows;
  rows.begin(30, 10, [&](Row& row, unsigned, Reads& out) {
    ScriptedSource::read(rows.files[0], row.index * 10, 30, row.records, out);
    return false;
  });
  rows.read_group(*rows.reader());
  EXPECT_EQ(rows.behaviours[0]->bytes, 9 * 10U + 30U);
  for (std::uint64_t i = 0; i < 10; ++i) EXPECT_TRUE(rows.has_bytes(i, 0, i * 10, 30)) << i;
}

TEST(RowGroup, RoundsWithoutReadsArePassedOverAndRowsGoOnWhereOthersHaveEnded) {
  Rows rows;
  rows.begin(12, 100, [&](Row& row, unsigned round, Reads& out) {
    EXPECT_EQ(row.round, round + 1);
    if (round == 0) return true;                                                          // nothing at all
    if (round == 1) return ScriptedSource::read(rows.files[0], 40, 0, row.records, out);  // nothing to read
    return plan_rounds(rows.files[0], row, round - 2, out);
  });
  rows.read_group(*rows.reader());
  for (std::uint64_t i = 0; i < 100; ++i) EXPECT_TRUE(rows.has_bytes(i, 0, i * 30, 12)) << i;
}

TEST(RowGroup, AnErrorInOneRowLeavesTheOthers) {
  for (const bool by_plan : {false, true}) {
    for (const std::uint64_t length : {0, 5}) {
      Rows rows;
      rows.behaviours[0]->failures = by_plan ? 0 : 1;
      rows.behaviours[0]->fail_offset = length > 0 ? 2 * 50 : 2;
      rows.begin(length, 6, [&](Row& row, unsigned round, Reads& out) {
        if (by_plan && row.index == 2 && round == (length > 0 ? 0 : 1)) throw std::runtime_error("no such row");
        if (length == 0) return plan_ragged(rows.files[0], row, round, out);
        ScriptedSource::read(rows.files[0], row.index * 50, length, row.records, out);
        return false;
      });
      rows.read_group(*rows.reader());
      for (std::uint64_t i = 0; i < 6; ++i) {
        EXPECT_EQ(rows.batch->rows[i].error != nullptr, i == 2) << i;
        EXPECT_TRUE(i == 2 || rows.has_bytes(i, 0, i * 50, length > 0 ? length : i)) << i;
      }
    }
  }
}

// There is no channel, it refuses, or there is no memory.
TEST(RowGroup, WhatIsRefusedFailsAllRowsThatHaveNotEnded) {
  for (const bool no_channel : {false, true}) {
    for (const unsigned refused : {0U, 1U}) {  // round, which only row 2 has where it is the second
      Rows rows;
      rows.behaviours[refused]->refused = no_channel ? 0 : 1;
      rows.behaviours[refused]->unopened = no_channel ? 1 : 0;
      rows.begin(12, 10, [&](Row& row, unsigned round, Reads& out) {
        ScriptedSource::read(rows.files[round], row.index * 12 + round * 6, 6, row.records + round * 6, out);
        return round == 0 && row.index == 2;
      });
      rows.read_group(*rows.reader());
      for (std::uint64_t i = 0; i < 10; ++i) {
        EXPECT_EQ(rows.batch->rows[i].error != nullptr, refused == 0 || i == 2) << i;
      }
    }
  }
  Rows ragged;
  ragged.has_no_memory = true;
  ragged.begin_ragged(8);
  ragged.read_group(*ragged.reader());
  EXPECT_EQ(ragged.groups_placed, 1);
  for (const Row& row : ragged.batch->rows) {
    ASSERT_TRUE(row.error);
    EXPECT_THROW(std::rethrow_exception(row.error), std::bad_alloc);
  }
}

TEST(RowGroup, ACancelledGroupEndsOnce) {
  for (const bool before : {false, true}) {
    Rows rows(1);
    rows.begin_rounds(10);
    ReadCounters counters;
    RowReader reader([](const RowReader::Ended&) {}, StoreChoice(), ChannelMode::MayWait, &counters);
    rows.batch->cancelled = before;
    rows.start_group(reader);
    EXPECT_EQ(rows.groups_done, before ? 1 : 0);
    rows.batch->cancelled = true;
    Rows::finish(reader);
    EXPECT_EQ(rows.groups_done, 1);
    for (const Row& row : rows.batch->rows) EXPECT_LE(row.round, before ? 0U : 1U);
    Metrics sums;
    counters.add_to(sums);
    EXPECT_EQ(sums.bytes_read, 0U) << "its reads know that they are cancelled";
  }
}

}  // namespace
}  // namespace penstock::testing
