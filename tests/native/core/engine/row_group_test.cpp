// Groups of rows go through their rounds in step, in as few requests as their places allow.
#include "core/engine/row_group.h"

#include "core/base/error.h"
#include "tests/native/core/engine/scripted_source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <vector>

namespace penstock::testing {
namespace {

/// Rows of a source that lie in one file, and the rounds of a group of them.
class Group {
 public:
  explicit Group(std::uint64_t near_bytes = 0) {
    behaviour_->near_bytes = near_bytes;
    store_ = std::make_unique<MemoryStore>(behaviour_);
    file = store_->put("file", telling_bytes(10'000, 3));
  }

  void begin(std::uint64_t length, std::size_t rows, ScriptedSource::Plan plan) {
    source_ = std::make_shared<ScriptedSource>(length, std::move(plan));
    format_ = std::make_unique<BatchFormat>(plain_format(source_));
    rows_.resize(rows);
    memory.assign(10'000, std::byte{0xee});
    for (std::size_t i = 0; i < rows; ++i) {
      rows_[i].index = i;
      rows_[i].length = length;
      if (length > 0) rows_[i].records = memory.data() + i * length;
    }
    rounds = std::make_unique<GroupRounds>(RowGroup{.owner = nullptr,
                                                    .format = format_.get(),
                                                    .rows = rows_,
                                                    .cancelled = &cancelled,
                                                    .place = [this] { place(); },
                                                    .done = [] {}});
  }

  /// Reads rounds until no more are planned; returns how many requests each round had.
  std::vector<std::size_t> read_all() {
    std::vector<std::size_t> requests;
    while (true) {
      const std::span<Read> pieces = rounds->next({});
      if (pieces.empty()) return requests;
      requests.push_back(rounds->requests());
      for (Read& piece : pieces) {
        if (piece.offset == fail_offset) {
          piece.fail(std::make_exception_ptr(Error(ErrorKind::IoError, "bad sector")));
        } else {
          store_->read_small("file", piece.offset, std::span(piece.destination, piece.size));
        }
      }
      rounds->end_round();
    }
  }

  [[nodiscard]] bool has_bytes(std::size_t row, std::uint64_t offset, std::uint64_t size) const {
    const std::vector<std::byte> all = telling_bytes(10'000, 3);
    return std::memcmp(rows_[row].records, all.data() + offset, size) == 0;
  }
  Row& row(std::size_t i) { return rows_[i]; }

  File file;
  std::unique_ptr<GroupRounds> rounds;
  std::atomic<bool> cancelled{false};
  std::uint64_t fail_offset = UINT64_MAX;
  int placed = 0;
  bool place_throws = false;
  std::vector<std::byte> memory;

 private:
  void place() {
    ++placed;
    if (place_throws) throw std::bad_alloc();
    std::byte* at = memory.data();
    for (Row& row : rows_) {
      EXPECT_TRUE(row.error != nullptr || row.measured) << "all lengths are known";
      row.records = at;
      at += row.length;
    }
  }

  std::shared_ptr<Behaviour> behaviour_ = std::make_shared<Behaviour>();
  std::unique_ptr<MemoryStore> store_;
  std::shared_ptr<const ScriptedSource> source_;
  std::unique_ptr<BatchFormat> format_;
  std::vector<Row> rows_;
};

TEST(RowGroup, NeighboursAreOneRequestInEachRound) {
  Group group;
  group.begin(20, 50, [&](Row& row, unsigned round, Reads& out) {
    return ScriptedSource::read(group.file, row.index * 20 + round * 10, 10, row.records + round * 10, out) &&
           round == 0;
  });
  EXPECT_EQ(group.read_all(), (std::vector<std::size_t>{50, 50})) << "ten bytes lie between, and nothing is near";
  Group near(10);
  near.begin(20, 50, [&](Row& row, unsigned round, Reads& out) {
    return ScriptedSource::read(near.file, row.index * 20 + round * 10, 10, row.records + round * 10, out) &&
           round == 0;
  });
  EXPECT_EQ(near.read_all(), (std::vector<std::size_t>{1, 1}));
  for (std::size_t i = 0; i < 50; ++i) {
    EXPECT_TRUE(group.has_bytes(i, i * 20, 20));
    EXPECT_TRUE(near.has_bytes(i, i * 20, 20));
    EXPECT_FALSE(near.row(i).error);
  }
}

TEST(RowGroup, RowsThatShareBytesReadThemOnce) {
  Group group;
  group.begin(30, 10, [&](Row& row, unsigned, Reads& out) {
    ScriptedSource::read(group.file, row.index * 10, 30, row.records, out);
    return false;
  });
  EXPECT_EQ(group.read_all(), std::vector<std::size_t>{1});
  for (std::size_t i = 0; i < 10; ++i) EXPECT_TRUE(group.has_bytes(i, i * 10, 30));
}

TEST(RowGroup, RowsGoOnByThemselvesWhereOthersHaveEnded) {
  Group group;
  group.begin(8, 4, [&](Row& row, unsigned round, Reads& out) {
    EXPECT_EQ(row.round, round + 1);
    ScriptedSource::read(group.file, row.index * 100 + round * 2, 2, row.records + round * 2, out);
    return round < row.index;
  });
  EXPECT_EQ(group.read_all(), (std::vector<std::size_t>{4, 3, 2, 1}));
  for (std::size_t i = 0; i < 4; ++i) EXPECT_TRUE(group.has_bytes(i, i * 100, (i + 1) * 2));
}

TEST(RowGroup, RoundsWithoutReadsArePassedOver) {
  Group group;
  group.begin(8, 3, [&](Row& row, unsigned round, Reads& out) {
    if (round == 0) return true;                                                       // nothing at all
    if (round == 1) return ScriptedSource::read(group.file, 40, 0, row.records, out);  // nothing to read
    ScriptedSource::read(group.file, row.index * 8, 8, row.records, out);
    return false;
  });
  EXPECT_EQ(group.read_all(), std::vector<std::size_t>{1});
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(group.has_bytes(i, i * 8, 8)) << i;
}

/// Row i has i records, from byte 50 * i on; what says so is read in as many rounds.
bool plan_ragged(const Group& group, Row& row, Reads& out) {
  if (row.measured) {
    if (row.length > 0) ScriptedSource::read(group.file, row.index * 50, row.length, row.records, out);
    return false;
  }
  if (row.round <= row.index) {
    return ScriptedSource::read(group.file, row.index, 1, row.arena.allocate(1), out);
  }
  row.length = row.index;
  row.measured = true;
  return true;
}

TEST(RowGroup, RaggedRowsGetTheirPlaceOnceAllLengthsAreKnown) {
  Group group;
  group.begin(0, 6, [&](Row& row, unsigned, Reads& out) {
    EXPECT_EQ(group.placed, row.measured ? 1 : 0);
    return plan_ragged(group, row, out);
  });
  EXPECT_EQ(group.read_all().size(), 5U + 1U) << "five rounds for the longest measure, one for the records";
  EXPECT_EQ(group.placed, 1);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(group.row(i).length, i);
    EXPECT_TRUE(group.has_bytes(i, i * 50, i));
  }
}

TEST(RowGroup, NoMemoryFailsAllRows) {
  Group group;
  group.place_throws = true;
  group.begin(0, 3, [&](Row& row, unsigned, Reads& out) { return plan_ragged(group, row, out); });
  group.read_all();
  EXPECT_EQ(group.placed, 1);
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(group.row(i).error);
    EXPECT_THROW(std::rethrow_exception(group.row(i).error), std::bad_alloc);
  }
}

TEST(RowGroup, AnErrorInOneRowLeavesTheOthers) {
  for (const bool by_plan : {false, true}) {
    for (const std::uint64_t length : {0, 5}) {
      Group group;
      if (!by_plan) group.fail_offset = length > 0 ? 2 * 50 : 2;
      group.begin(length, 6, [&](Row& row, unsigned round, Reads& out) {
        if (by_plan && row.index == 2 && round == (length > 0 ? 0 : 1)) throw std::runtime_error("no such row");
        if (length == 0) return plan_ragged(group, row, out);
        ScriptedSource::read(group.file, row.index * 50, length, row.records, out);
        return false;
      });
      group.read_all();
      for (std::size_t i = 0; i < 6; ++i) {
        EXPECT_EQ(group.row(i).error != nullptr, i == 2) << i;
        EXPECT_TRUE(i == 2 || group.has_bytes(i, i * 50, length > 0 ? length : i)) << i;
      }
    }
  }
}

TEST(RowGroup, ACancelledGroupPlansNothing) {
  Group group;
  int planned = 0;
  group.begin(8, 3, [&](Row& row, unsigned, Reads& out) {
    ++planned;
    return ScriptedSource::read(group.file, row.index * 8, 8, row.records, out);
  });
  const std::span<Read> pieces = group.rounds->next({});
  ASSERT_EQ(pieces.size(), 3U);
  for (const Read& piece : pieces) EXPECT_EQ(piece.cancelled, &group.cancelled);
  group.cancelled = true;
  group.rounds->end_round();
  EXPECT_TRUE(group.rounds->next({}).empty());
  EXPECT_EQ(planned, 3);
}

// The reads of its last round may be refused before they are under way: no channel, no memory.
TEST(RowGroup, AFailureFailsRowsWhoseLastRoundIsPlanned) {
  Group group;
  group.begin(8, 3, [&](Row& row, unsigned round, Reads& out) {
    ScriptedSource::read(group.file, row.index * 8, 8, row.records, out);
    return row.index == 2 && round == 0;
  });
  ASSERT_FALSE(group.rounds->next({}).empty());
  group.rounds->fail(std::make_exception_ptr(std::bad_alloc()));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(group.row(i).error) << i;
  EXPECT_TRUE(group.rounds->next({}).empty());
}

TEST(RowGroup, AFailureLeavesRowsThatHaveEnded) {
  Group group;
  group.begin(8, 3, [&](Row& row, unsigned round, Reads& out) {
    ScriptedSource::read(group.file, row.index * 8, 8, row.records, out);
    return row.index == 2 && round == 0;
  });
  ASSERT_FALSE(group.rounds->next({}).empty());
  group.rounds->end_round();
  group.rounds->fail(std::make_exception_ptr(std::bad_alloc()));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(group.row(i).error != nullptr, i == 2) << i;
}

}  // namespace
}  // namespace penstock::testing
