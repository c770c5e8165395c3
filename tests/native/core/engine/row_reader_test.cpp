// Rows and groups go through their rounds, whatever their stores do, and end once.
#include "core/engine/row_reader.h"

#include "core/base/error.h"
#include "core/engine/batch_memory.h"
#include "core/engine/batch_work.h"
#include "tests/native/core/engine/scripted_source.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace penstock::testing {
namespace {

using namespace std::chrono_literals;
using Part = RowReader::Part;

constexpr std::uint64_t kFileBytes = 20'000;

/// Three stores with a file each, a source over them, a batch of its rows, and how each of them ended.
class Rows {
 public:
  Rows() {
    for (unsigned i = 0; i < 3; ++i) {
      stores_[i] = std::make_unique<MemoryStore>(behaviours[i]);
      files[i] = stores_[i]->put("file", telling_bytes(kFileBytes, i));
    }
  }

  void begin(std::uint64_t length, std::uint64_t rows, ScriptedSource::Plan plan) {
    auto formats = std::make_shared<BatchFormats>();
    formats->push_back(plain_format(std::make_shared<ScriptedSource>(length, std::move(plan))));
    batch = std::make_shared<Batch>();
    batch->formats = formats;
    batch->format = &formats->front();
    batch->plan.rows = batch->plan.valid = rows;
    for (std::uint64_t i = 0; i < rows; ++i) batch->picks.push_back({i, 0, 0, 0});
    BatchWork(*batch).prepare_rows();
    if (length > 0) place();
    ends.assign(rows, 0);
    errors.assign(rows, nullptr);
    not_at_hand.assign(rows, false);
  }
  void place() {
    batch->slab.ensure(needed_bytes(*batch));
    BatchWork(*batch).place();
  }

  std::unique_ptr<RowReader> reader(ChannelMode mode = ChannelMode::MayWait) {
    return std::make_unique<RowReader>(
        [this](const RowReader::Ended& ended) {
          EXPECT_EQ(ended.batch, batch);
          ++ends[ended.row];
          errors[ended.row] = ended.error;
          not_at_hand[ended.row] = ended.not_at_hand;
        },
        StoreChoice(), mode);
  }
  void start_all(RowReader& reader, Part part = Part::Whole) {
    for (std::uint64_t i = 0; i < batch->plan.valid; ++i) reader.start(batch, i, part);
  }
  void read_all(RowReader& reader, Part part = Part::Whole) {
    start_all(reader, part);
    while (!reader.is_idle()) reader.pump(50ms);
  }

  [[nodiscard]] bool has_bytes(std::uint64_t row, unsigned file, std::uint64_t offset, std::uint64_t size,
                               std::uint64_t at = 0) const {
    const std::vector<std::byte> bytes = telling_bytes(kFileBytes, file);
    return std::memcmp(batch->rows[row].records + at, bytes.data() + offset, size) == 0;
  }
  [[nodiscard]] bool is_whole(std::uint64_t row) const { return !errors[row] && batch->rows[row].spans.size() == 1; }

  std::array<std::shared_ptr<Behaviour>, 3> behaviours{std::make_shared<Behaviour>(), std::make_shared<Behaviour>(),
                                                       std::make_shared<Behaviour>()};
  std::array<File, 3> files;
  std::shared_ptr<Batch> batch;
  std::vector<int> ends;
  std::vector<std::exception_ptr> errors;
  std::vector<bool> not_at_hand;

 private:
  std::array<std::unique_ptr<MemoryStore>, 3> stores_;
};

/// Row i is read in i % 4 + 1 rounds, of which some plan nothing.
bool plan_rounds(const File& file, Row& row, unsigned round, Reads& out) {
  const std::uint64_t rounds = row.index % 4 + 1;
  const std::uint64_t first = round * 12 / rounds;
  const std::uint64_t last = (round + 1) * 12 / rounds;
  if (row.index % 3 != 1 || round + 1 == rounds) {
    const std::uint64_t from = row.index % 3 == 1 ? 0 : first;
    ScriptedSource::read(file, row.index * 30 + from, last - from, row.records + from, out);
  }
  return round + 1 < rounds;
}

TEST(RowReader, ARowEndsOnceWithAllItsBytes) {
  for (const bool late : {false, true}) {
    Rows rows;
    rows.behaviours[0]->late = late;
    rows.begin(12, 100,
               [&](Row& row, unsigned round, Reads& out) { return plan_rounds(rows.files[0], row, round, out); });
    const auto reader = rows.reader();
    for (int again = 1; again <= 2; ++again) {
      rows.read_all(*reader);
      for (std::uint64_t i = 0; i < 100; ++i) {
        EXPECT_EQ(rows.ends[i], again);
        EXPECT_TRUE(rows.is_whole(i) && rows.has_bytes(i, 0, i * 30, 12)) << i;
      }
      BatchWork(*rows.batch).prepare_rows();
      rows.place();
    }
  }
}

TEST(RowReader, RaggedRowsAreMeasuredFirstAndReadAfterThat) {
  for (const bool late : {false, true}) {
    Rows rows;
    rows.behaviours[0]->late = late;
    rows.begin(0, 40, [&](Row& row, unsigned round, Reads& out) {
      if (round == 0) return ScriptedSource::read(rows.files[0], row.index, 1, row.arena.allocate(1), out);
      if (round == 1) {
        row.length = row.index % 7;
        row.measured = true;
        return true;
      }
      if (row.length > 0) ScriptedSource::read(rows.files[0], row.index * 50, row.length, row.records, out);
      return false;
    });
    const auto reader = rows.reader();
    rows.read_all(*reader, Part::Measure);
    for (std::uint64_t i = 0; i < 40; ++i) {
      EXPECT_EQ(rows.ends[i], 1);
      EXPECT_EQ(rows.batch->rows[i].length, i % 7);
      EXPECT_TRUE(rows.batch->rows[i].spans.empty()) << "it is not finished";
    }
    BatchWork(*rows.batch).measure();
    rows.place();
    rows.read_all(*reader, Part::AfterMeasure);
    for (std::uint64_t i = 0; i < 40; ++i) {
      EXPECT_EQ(rows.ends[i], 2);
      EXPECT_TRUE(rows.is_whole(i) && rows.has_bytes(i, 0, i * 50, i % 7)) << i;
    }
  }
}

TEST(RowReader, AnErrorEndsItsRowAlone) {
  for (const bool late : {false, true}) {
    for (const bool by_plan : {false, true}) {
      Rows rows;
      rows.behaviours[0]->late = late;
      rows.behaviours[0]->failures = by_plan ? 0 : 1;
      rows.behaviours[0]->fail_offset = 7 * 30;
      rows.begin(12, 20, [&](Row& row, unsigned round, Reads& out) {
        if (by_plan && row.index == 7 && round == 2) throw std::runtime_error("no such round");
        return plan_rounds(rows.files[0], row, round, out);
      });
      const auto reader = rows.reader();
      rows.read_all(*reader);
      for (std::uint64_t i = 0; i < 20; ++i) {
        EXPECT_EQ(rows.ends[i], 1);
        EXPECT_EQ(rows.is_whole(i), i != 7) << i;
      }
      EXPECT_TRUE(rows.errors[7]);
      EXPECT_TRUE(rows.batch->rows[7].spans.empty());
    }
  }
}

TEST(RowReader, AChannelThatRefusesFailsTheRowsItWasGiven) {
  Rows rows;
  rows.behaviours[0]->refused = 1;
  rows.begin(12, 20, [&](Row& row, unsigned round, Reads& out) { return plan_rounds(rows.files[0], row, round, out); });
  const auto reader = rows.reader();
  rows.read_all(*reader);
  for (std::uint64_t i = 0; i < 20; ++i) {
    EXPECT_EQ(rows.ends[i], 1);
    ASSERT_TRUE(rows.errors[i]);
    EXPECT_THROW(std::rethrow_exception(rows.errors[i]), std::bad_alloc);
  }
  BatchWork(*rows.batch).prepare_rows();
  rows.place();
  rows.read_all(*reader);
  for (std::uint64_t i = 0; i < 20; ++i) EXPECT_TRUE(rows.is_whole(i)) << "the next time it does not";
}

TEST(RowReader, AStoreWithoutAChannelFailsItsRowsAndNoOthers) {
  Rows rows;
  rows.behaviours[1]->unopened = 3;
  rows.begin(12, 12, [&](Row& row, unsigned, Reads& out) {
    ScriptedSource::read(rows.files[row.index % 2], row.index * 12, 12, row.records, out);
    return false;
  });
  const auto reader = rows.reader();
  rows.read_all(*reader);
  for (std::uint64_t i = 0; i < 12; ++i) {
    EXPECT_EQ(rows.ends[i], 1);
    EXPECT_EQ(rows.is_whole(i), i % 2 == 0 || i > 5) << i;
  }
}

TEST(RowReader, RowsOfACancelledBatchEndWithoutMoreRounds) {
  for (const bool late : {false, true}) {
    Rows rows;
    rows.behaviours[0]->late = late;
    rows.begin(12, 8,
               [&](Row& row, unsigned round, Reads& out) { return plan_rounds(rows.files[0], row, round, out); });
    const auto reader = rows.reader();
    rows.start_all(*reader);
    rows.batch->cancelled = true;
    while (!reader->is_idle()) reader->pump(50ms);
    for (std::uint64_t i = 0; i < 8; ++i) {
      EXPECT_EQ(rows.ends[i], 1);
      EXPECT_FALSE(rows.errors[i]);
      EXPECT_EQ(rows.batch->rows[i].spans.size(), 0U);
      EXPECT_EQ(rows.batch->rows[i].round, i % 3 == 1 ? i % 4 + 1 : 1) << "no round after the first that reads";
    }
  }
}

/// Round k reads from store (i + k) % 3, so that channels are opened while others have reads under way.
bool plan_stores(const std::array<File, 3>& files, Row& row, unsigned round, Reads& out) {
  ScriptedSource::read(files[(row.index + round) % 3], row.index * 50 + round * 4, 4, row.records + round * 4, out);
  return round < 2;
}

bool has_bytes_of_stores(const Rows& rows, std::uint64_t i) {
  bool has = true;
  for (unsigned k = 0; k < 3; ++k) {
    has = has && rows.has_bytes(i, static_cast<unsigned>((i + k) % 3), i * 50 + k * 4, 4, k * 4);
  }
  return has;
}

TEST(RowReader, RowsGoFromStoreToStore) {
  for (unsigned late = 0; late < 8; ++late) {
    for (const std::uint64_t count : {1, 100}) {
      Rows rows;
      for (unsigned i = 0; i < 3; ++i) rows.behaviours[i]->late = (late >> i) % 2 == 1;
      rows.begin(12, count,
                 [&](Row& row, unsigned round, Reads& out) { return plan_stores(rows.files, row, round, out); });
      const auto reader = rows.reader();
      rows.read_all(*reader);
      for (std::uint64_t i = 0; i < count; ++i) {
        EXPECT_EQ(rows.ends[i], 1);
        EXPECT_TRUE(rows.is_whole(i) && has_bytes_of_stores(rows, i)) << i;
      }
      EXPECT_EQ(rows.behaviours[0]->channels, 1U);
    }
  }
}

TEST(RowReader, WithoutWaitingRowsThatAreAtHandEndAndOthersAreToldOf) {
  Rows rows;
  for (const auto& behaviour : rows.behaviours) behaviour->miss_every = 1'000'000;
  rows.behaviours[2]->nothing_at_hand = true;
  rows.begin(12, 30, [&](Row& row, unsigned round, Reads& out) {
    if (row.index % 2 == 0) return plan_rounds(rows.files[0], row, round, out);
    return plan_stores(rows.files, row, round, out);
  });
  const auto reader = rows.reader(ChannelMode::NonBlocking);
  rows.start_all(*reader);
  reader->pump(0ns);
  EXPECT_TRUE(reader->is_idle()) << "nothing is waited for";
  for (std::uint64_t i = 0; i < 30; ++i) {
    EXPECT_EQ(rows.ends[i], 1);
    EXPECT_FALSE(rows.errors[i]);
    EXPECT_EQ(rows.not_at_hand[i], i % 2 == 1) << i;
    EXPECT_EQ(rows.is_whole(i), i % 2 == 0) << i << ": what is not there has no spans";
  }
}

TEST(RowReader, ReadsThatMissAreToldOfInAnyRound) {
  Rows rows;
  rows.behaviours[0]->miss_every = 5;
  rows.begin(12, 60, [&](Row& row, unsigned round, Reads& out) { return plan_rounds(rows.files[0], row, round, out); });
  const auto reader = rows.reader(ChannelMode::NonBlocking);
  rows.start_all(*reader);
  reader->pump(0ns);
  EXPECT_TRUE(reader->is_idle());
  std::uint64_t missed = 0;
  for (std::uint64_t i = 0; i < 60; ++i) {
    EXPECT_EQ(rows.ends[i], 1);
    EXPECT_EQ(rows.is_whole(i), !rows.not_at_hand[i]);
    EXPECT_TRUE(rows.not_at_hand[i] || rows.has_bytes(i, 0, i * 30, 12));
    missed += rows.not_at_hand[i] ? 1 : 0;
  }
  EXPECT_EQ(missed, rows.behaviours[0]->asked - rows.behaviours[0]->hits) << "each miss ends its row";
  EXPECT_GT(missed, 5U);
}

TEST(RowReader, IsBusyWithAsManyReadsAsItsStoreWants) {
  Rows rows;
  rows.behaviours[0]->late = true;
  rows.begin(12, 64, [&](Row& row, unsigned, Reads& out) {
    ScriptedSource::read(rows.files[0], row.index * 12, 12, row.records, out);
    return false;
  });
  const auto reader = rows.reader();
  for (std::uint64_t i = 0; i < 64; ++i) {
    EXPECT_FALSE(reader->is_busy()) << i;
    reader->start(rows.batch, i, Part::Whole);
  }
  EXPECT_TRUE(reader->is_busy());
  reader->pump(0ns);
  EXPECT_TRUE(reader->is_busy()) << "submitted is not read";
  while (!reader->is_idle()) reader->pump(1ms);
  EXPECT_FALSE(reader->is_busy());
}

TEST(RowReader, WaitsForItsReadsBeforeItGoesAndTellsNobody) {
  Rows rows;
  rows.behaviours[0]->late = true;
  rows.begin(12, 20, [&](Row& row, unsigned round, Reads& out) { return plan_rounds(rows.files[0], row, round, out); });
  auto reader = rows.reader();
  rows.start_all(*reader);
  reader->pump(0ns);
  reader.reset();
  for (std::uint64_t i = 0; i < 20; ++i) EXPECT_EQ(rows.ends[i], 0);
  EXPECT_EQ(rows.batch.use_count(), 1) << "nobody holds the batch any more";
}

// --- groups

/// Starts all rows of the batch as a group; `done` counts.
void start_group(Rows& rows, RowReader& reader, int& done) {
  const std::shared_ptr<Batch> batch = rows.batch;
  reader.start(RowGroup{.owner = batch,
                        .format = batch->format,
                        .rows = std::span(batch->rows.data(), batch->plan.valid),
                        .cancelled = &batch->cancelled,
                        .place =
                            [batch] {
                              BatchWork(*batch).measure();
                              batch->slab.ensure(needed_bytes(*batch));
                              BatchWork(*batch).place();
                            },
                        .done = [&done] { ++done; }});
}

TEST(RowReaderGroup, NeighboursAreFewerRequestsThanRows) {
  const auto plan = [](const Rows& rows, Row& row, unsigned round, Reads& out) {
    ScriptedSource::read(rows.files[0], row.index * 24 + round * 12, 6, row.records + round * 6, out);
    return round == 0;
  };
  for (const bool late : {false, true}) {
    Rows rows;
    rows.behaviours[0]->late = late;
    rows.behaviours[0]->near_bytes = 18;
    rows.begin(12, 100, [&](Row& row, unsigned round, Reads& out) { return plan(rows, row, round, out); });
    const auto reader = rows.reader();
    int done = 0;
    start_group(rows, *reader, done);
    while (!reader->is_idle()) reader->pump(50ms);
    EXPECT_EQ(done, 1);
    EXPECT_EQ(rows.behaviours[0]->runs, 2U) << "one a round";
    for (std::uint64_t i = 0; i < 100; ++i) {
      EXPECT_TRUE(rows.has_bytes(i, 0, i * 24, 6) && rows.has_bytes(i, 0, i * 24 + 12, 6, 6)) << i;
    }
    BatchWork(*rows.batch).prepare_rows();
    rows.place();
    rows.read_all(*reader);
    EXPECT_EQ(rows.behaviours[0]->runs, 2U + 200U) << "rows by themselves";
  }
}

TEST(RowReaderGroup, RowsAndGroupsOfSeveralStoresAreUnderWayTogether) {
  for (unsigned late = 0; late < 8; ++late) {
    Rows rows;
    Rows others;
    for (unsigned i = 0; i < 3; ++i) rows.behaviours[i]->late = (late >> i) % 2 == 1;
    const auto plan = [](Rows& of) {
      return [&of](Row& row, unsigned round, Reads& out) { return plan_stores(of.files, row, round, out); };
    };
    rows.begin(12, 40, plan(rows));
    others.begin(12, 40, plan(others));
    const auto reader = others.reader();
    int done = 0;
    start_group(rows, *reader, done);
    others.read_all(*reader);
    EXPECT_EQ(done, 1);
    for (std::uint64_t i = 0; i < 40; ++i) {
      EXPECT_TRUE(has_bytes_of_stores(rows, i)) << i;
      EXPECT_FALSE(rows.batch->rows[i].error);
      EXPECT_TRUE(others.is_whole(i) && has_bytes_of_stores(others, i)) << i;
    }
  }
}

TEST(RowReaderGroup, WhatIsRefusedFailsAllRowsOnce) {
  for (const bool no_channel : {false, true}) {
    for (const unsigned last : {0U, 1U}) {
      Rows rows;
      rows.behaviours[last]->refused = no_channel ? 0 : 1;
      rows.behaviours[last]->unopened = no_channel ? 1 : 0;
      rows.begin(12, 10, [&](Row& row, unsigned round, Reads& out) {
        ScriptedSource::read(rows.files[round], row.index * 12 + round * 6, 6, row.records + round * 6, out);
        return round < last;
      });
      const auto reader = rows.reader();
      int done = 0;
      start_group(rows, *reader, done);
      while (!reader->is_idle()) reader->pump(50ms);
      EXPECT_EQ(done, 1);
      for (std::uint64_t i = 0; i < 10; ++i) {
        EXPECT_TRUE(rows.batch->rows[i].error) << "row " << i << " is told of nothing, and has no bytes";
      }
    }
  }
}

TEST(RowReaderGroup, ACancelledGroupEndsOnce) {
  for (const bool before : {false, true}) {
    Rows rows;
    rows.behaviours[0]->late = true;
    rows.begin(12, 10,
               [&](Row& row, unsigned round, Reads& out) { return plan_rounds(rows.files[0], row, round, out); });
    const auto reader = rows.reader();
    int done = 0;
    if (before) rows.batch->cancelled = true;
    start_group(rows, *reader, done);
    EXPECT_EQ(done, before ? 1 : 0);
    rows.batch->cancelled = true;
    while (!reader->is_idle()) reader->pump(50ms);
    EXPECT_EQ(done, 1);
    for (const Row& row : rows.batch->rows) EXPECT_LE(row.round, before ? 0U : 1U);
  }
}

TEST(RowReaderGroup, RaggedRowsArePlacedTogether) {
  for (const bool late : {false, true}) {
    Rows rows;
    rows.behaviours[0]->late = late;
    rows.begin(0, 30, [&](Row& row, unsigned round, Reads& out) {
      if (round == 0) return ScriptedSource::read(rows.files[0], row.index, 1, row.arena.allocate(1), out);
      if (round == 1) {
        row.length = row.index % 5;
        row.measured = true;
        return true;
      }
      if (row.length > 0) ScriptedSource::read(rows.files[0], row.index * 50, row.length, row.records, out);
      return false;
    });
    const auto reader = rows.reader();
    int done = 0;
    start_group(rows, *reader, done);
    while (!reader->is_idle()) reader->pump(50ms);
    EXPECT_EQ(done, 1);
    for (std::uint64_t i = 0; i < 30; ++i) EXPECT_TRUE(rows.has_bytes(i, 0, i * 50, i % 5)) << i;
  }
}

}  // namespace
}  // namespace penstock::testing
