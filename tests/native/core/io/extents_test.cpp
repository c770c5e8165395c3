// Which reads become one request, where their bytes go, and who is told of an error.
#include "core/io/extents.h"

#include "core/base/error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace penstock::testing {
namespace {

constexpr std::uint64_t kExtentsFileBytes = 40'000;
constexpr std::byte kUntouched{0xee};

/// Reads of three files whose bytes are known, each with memory of its own that is exactly as large.
class WantedExtents {
 public:
  WantedExtents() {
    std::uint32_t value = 1;
    for (auto& bytes : contents_) {
      bytes.resize(kExtentsFileBytes);
      for (std::byte& byte : bytes) byte = static_cast<std::byte>((value = value * 1'664'525 + 1'013'904'223) >> 24);
    }
  }

  Read& add(std::size_t file, std::uint64_t offset, std::uint64_t size) {
    Read& read = *reads_.emplace_back(std::make_unique<Read>());
    read.file = &files_[file];
    read.offset = offset;
    read.size = size;
    read.owner = &read;
    memory_.emplace_back(std::make_unique<std::byte[]>(size));
    read.destination = memory_.back().get();
    std::fill_n(read.destination, size, kUntouched);
    return read;
  }

  void plan(const ExtentRules& rules) {
    std::vector<Read*> pointers;
    for (const auto& read : reads_) pointers.push_back(read.get());
    extents_.plan(pointers, rules);
  }

  [[nodiscard]] const std::byte* content(const Read& read) const {
    return contents_[static_cast<std::size_t>(read.file - files_.data())].data() + read.offset;
  }
  void bring(const Read& piece) const { std::memcpy(piece.destination, content(piece), piece.size); }
  /// As a store would that has no errors.
  void read_all() {
    for (const Read& piece : extents_.pieces()) bring(piece);
    extents_.complete();
  }

  [[nodiscard]] bool has_its_bytes(const Read& read) const {
    return read.outcome == Outcome::Done && std::memcmp(read.destination, content(read), read.size) == 0;
  }
  void expect_all_read() const {
    for (const auto& read : reads_) {
      EXPECT_TRUE(has_its_bytes(*read)) << "[" << read->offset << ", " << read->offset + read->size << ")";
    }
  }

  /// Pieces that follow one another, as a channel sees them.
  std::vector<std::vector<const Read*>> runs() {
    std::vector<std::vector<const Read*>> runs;
    for (const Read& piece : extents_.pieces()) {
      const Read* last = runs.empty() ? nullptr : runs.back().back();
      if (last == nullptr || last->file != piece.file || last->offset + last->size != piece.offset) runs.emplace_back();
      runs.back().push_back(&piece);
    }
    return runs;
  }

  Extents& extents() { return extents_; }
  [[nodiscard]] const std::vector<std::unique_ptr<Read>>& reads() const { return reads_; }

 private:
  std::array<File, 3> files_;
  std::array<std::vector<std::byte>, 3> contents_;
  std::vector<std::unique_ptr<Read>> reads_;
  std::vector<std::unique_ptr<std::byte[]>> memory_;
  Extents extents_;
};

std::uint64_t floor_to(std::uint64_t value, std::uint64_t block) {
  return value / block * block;
}
std::uint64_t ceil_to(std::uint64_t value, std::uint64_t block) {
  return (value + block - 1) / block * block;
}

/// Whether a byte of the piece is one that some read asked for.
bool is_wanted(const Read& piece, const std::vector<std::unique_ptr<Read>>& reads) {
  return std::any_of(reads.begin(), reads.end(), [&](const auto& read) {
    return read->file == piece.file && read->offset < piece.offset + piece.size &&
           piece.offset < read->offset + read->size;
  });
}

TEST(Extents, RandomReadsGetTheirBytesByRequestsThatKeepTheRules) {
  std::mt19937_64 random(8);
  for (int round = 0; round < 3000; ++round) {
    const ExtentRules rules{.near_bytes = std::array{0U, 1U, 17U, 300U, 5'000U}[random() % 5],
                            .block_bytes = std::array{1U, 64U, 4'096U}[random() % 3],
                            .most_bytes = std::array{1U, 500U, 4'000U, 1U << 20}[random() % 4]};
    WantedExtents wanted;
    const std::uint64_t spread = std::array<std::uint64_t, 3>{50, 2'000, kExtentsFileBytes - 600}[random() % 3];
    for (std::uint64_t i = 1 + random() % 40; i > 0; --i) {
      wanted.add(random() % 3, random() % spread, random() % std::array{1U, 20U, 600U}[random() % 3]);
    }
    wanted.plan(rules);
    const auto runs = wanted.runs();
    EXPECT_LE(runs.size(), wanted.extents().requests()) << "requests may touch; within one no piece is missing";
    for (const Read& piece : wanted.extents().pieces()) {
      EXPECT_GT(piece.size, 0U);
      const bool has_owner = std::any_of(wanted.reads().begin(), wanted.reads().end(),
                                         [&](const auto& read) { return piece.owner == read.get(); });
      EXPECT_TRUE(has_owner);
    }
    for (const auto& run : runs) {
      for (std::size_t i = 0; i < run.size(); ++i) {
        if (is_wanted(*run[i], wanted.reads())) continue;
        ASSERT_TRUE(0 < i && i + 1 < run.size()) << "a request neither begins nor ends with bytes that nobody needs";
        const std::uint64_t begin = ceil_to(run[i]->offset, rules.block_bytes);
        const std::uint64_t end = floor_to(run[i]->offset + run[i]->size, rules.block_bytes);
        EXPECT_TRUE(end <= begin || end - begin <= rules.near_bytes);
      }
    }
    wanted.read_all();
    wanted.expect_all_read();
    if (HasFailure()) FAIL() << "round " << round;
  }
}

TEST(Extents, WhatIsAdjacentOverlappingNestedOrEqualIsOneRequestAndReadOnce) {
  WantedExtents wanted;
  wanted.add(0, 300, 100);
  wanted.add(0, 100, 100);
  wanted.add(0, 200, 100);  // adjacent to both
  wanted.add(0, 150, 100);  // overlaps two
  wanted.add(0, 110, 20);   // nested
  wanted.add(0, 100, 100);  // equal
  wanted.add(0, 100, 300);  // all of it
  wanted.plan({});
  EXPECT_EQ(wanted.extents().requests(), 1U);
  EXPECT_EQ(wanted.runs().size(), 1U);
  std::uint64_t bytes = 0;
  for (const Read& piece : wanted.extents().pieces()) bytes += piece.size;
  EXPECT_EQ(bytes, 300U);
  wanted.read_all();
  wanted.expect_all_read();
}

TEST(Extents, FilesAreNeverMerged) {
  WantedExtents wanted;
  for (std::size_t file = 0; file < 3; ++file) {
    for (std::uint64_t i = 0; i < 4; ++i) wanted.add(file, i * 10, 10);
  }
  wanted.plan({.near_bytes = 1'000});
  EXPECT_EQ(wanted.extents().requests(), 3U);
  wanted.read_all();
  wanted.expect_all_read();
}

TEST(Extents, AGapIsReadUpToNearBytesAndNoFurther) {
  for (const std::uint64_t gap : {0U, 1U, 64U, 65U}) {
    WantedExtents wanted;
    wanted.add(0, 1'000, 50);
    wanted.add(0, 1'050 + gap, 50);
    wanted.plan({.near_bytes = 64});
    EXPECT_EQ(wanted.extents().requests(), gap <= 64 ? 1U : 2U) << gap;
    EXPECT_EQ(wanted.runs().size(), wanted.extents().requests()) << gap;
    wanted.read_all();
    wanted.expect_all_read();
  }
}

TEST(Extents, ARequestIsMostlyWantedWhereItHasToBe) {
  const auto requests = [](std::uint64_t most_unwanted) {
    WantedExtents wanted;
    for (const std::uint64_t at : {0, 150, 300, 1'000, 2'000}) wanted.add(0, at, 100);
    wanted.plan({.near_bytes = 1'000, .most_unwanted = most_unwanted});
    wanted.read_all();
    wanted.expect_all_read();
    return wanted.extents().requests();
  };
  EXPECT_EQ(requests(100), 1U);
  EXPECT_EQ(requests(50), 3U) << "gaps of 50 are taken, of 600 and 900 not";
  EXPECT_EQ(requests(24), 4U) << "50 of 250 is, 100 of 400 is not";
}

TEST(Extents, DistancesAreBetweenWholeBlocks) {
  const auto requests = [](std::uint64_t end, std::uint64_t next, std::uint64_t near_bytes) {
    WantedExtents wanted;
    wanted.add(0, end - 10, 10);
    wanted.add(0, next, 10);
    wanted.plan({.near_bytes = near_bytes, .block_bytes = 4'096});
    wanted.read_all();
    wanted.expect_all_read();
    return wanted.extents().requests();
  };
  EXPECT_EQ(requests(100, 4'000, 0), 1U) << "in one block";
  EXPECT_EQ(requests(100, 8'000, 0), 1U) << "in blocks that touch";
  EXPECT_EQ(requests(4'096, 4'096, 0), 1U);
  EXPECT_EQ(requests(4'096, 8'192, 0), 2U) << "a block lies between";
  EXPECT_EQ(requests(100, 8'192, 4'095), 2U);
  EXPECT_EQ(requests(100, 8'192, 4'096), 1U);
  EXPECT_EQ(requests(1'000, 3 * 4'096 + 4'000, 8'192), 1U) << "almost two blocks more than what is near";
}

TEST(Extents, OnlyASingleReadIsLongerThanMostBytes) {
  WantedExtents wanted;
  for (std::uint64_t i = 0; i < 20; ++i) wanted.add(0, i * 100, 100);
  wanted.add(1, 0, 5'000);
  wanted.add(1, 100, 200);  // its bytes come with the one that is too long anyway
  wanted.add(1, 5'000, 100);
  wanted.plan({.most_bytes = 1'000});
  EXPECT_EQ(wanted.extents().requests(), 2U + 2U);
  std::uint64_t longest = 0;
  for (const auto& read : wanted.reads()) longest = std::max(longest, read->size);
  EXPECT_EQ(longest, 5'000U);
  wanted.read_all();
  wanted.expect_all_read();
}

TEST(Extents, OverlapsAcrossALimitAreReadAgainForTheNextRequest) {
  WantedExtents wanted;
  for (std::uint64_t i = 0; i < 30; ++i) wanted.add(0, i * 50, 300);
  wanted.plan({.most_bytes = 700});
  for (const auto& run : wanted.runs()) {
    EXPECT_LE(run.back()->offset + run.back()->size - run.front()->offset, 700U);
  }
  wanted.read_all();
  wanted.expect_all_read();
}

/// Reads all but the pieces that have a byte of [begin, end), which end as `outcome`.
void read_all_but(WantedExtents& wanted, std::uint64_t begin, std::uint64_t end, Outcome outcome) {
  for (Read& piece : wanted.extents().pieces()) {
    if (piece.offset < end && begin < piece.offset + piece.size) {
      if (outcome == Outcome::Failed) {
        piece.fail(std::make_exception_ptr(Error(ErrorKind::IoError, "bad sector")));
      } else {
        piece.outcome = outcome;
      }
    } else {
      wanted.bring(piece);
    }
  }
  wanted.extents().complete();
}

TEST(Extents, AnOutcomeReachesTheReadsWhoseBytesThePieceBringsAndNoOthers) {
  for (const Outcome outcome : {Outcome::Failed, Outcome::NotAtHand}) {
    WantedExtents wanted;
    Read& before = wanted.add(0, 0, 100);
    Read& whole = wanted.add(0, 100, 100);
    Read& nested = wanted.add(0, 120, 20);
    Read& tail = wanted.add(0, 150, 100);   // its first half lies in `whole`
    Read& after = wanted.add(0, 200, 50);   // in the second half of `tail`
    Read& beyond = wanted.add(0, 260, 40);  // beyond a gap
    wanted.plan({.near_bytes = 32});
    ASSERT_EQ(wanted.extents().requests(), 1U);
    read_all_but(wanted, 100, 200, outcome);
    for (Read* read : {&whole, &nested, &tail}) {
      EXPECT_EQ(read->outcome, outcome);
      EXPECT_EQ(read->error != nullptr, outcome == Outcome::Failed);
    }
    for (Read* read : {&before, &after, &beyond}) EXPECT_TRUE(wanted.has_its_bytes(*read)) << read->offset;
  }
}

TEST(Extents, AnErrorIsNotHiddenByAMissOfThePieceBeside) {
  for (const bool error_first : {false, true}) {
    WantedExtents wanted;
    wanted.add(0, 0, 100);
    Read& both = wanted.add(0, 50, 100);
    wanted.plan({});
    ASSERT_EQ(wanted.extents().pieces().size(), 2U);
    wanted.extents().pieces()[error_first ? 1 : 0].outcome = Outcome::NotAtHand;
    wanted.extents().pieces()[error_first ? 0 : 1].fail(std::make_exception_ptr(Error(ErrorKind::IoError, "bad")));
    wanted.extents().complete();
    EXPECT_EQ(both.outcome, Outcome::Failed);
    EXPECT_TRUE(both.error);
  }
}

TEST(Extents, APieceThatNobodyNeedsMayFail) {
  for (const Outcome outcome : {Outcome::Failed, Outcome::NotAtHand}) {
    WantedExtents wanted;
    wanted.add(0, 0, 100);
    wanted.add(0, 110, 100);
    wanted.plan({.near_bytes = 10});
    ASSERT_EQ(wanted.extents().pieces().size(), 3U);
    read_all_but(wanted, 100, 110, outcome);
    wanted.expect_all_read();
  }
}

TEST(Extents, ReadsOfNothingCostNothing) {
  WantedExtents wanted;
  wanted.add(0, 0, 0);
  wanted.add(0, 5'000, 0);
  wanted.add(1, 7, 0);
  wanted.plan({.near_bytes = 100'000});
  EXPECT_EQ(wanted.extents().pieces().size(), 0U);
  EXPECT_EQ(wanted.extents().requests(), 0U);
  wanted.add(0, 100, 50);
  wanted.add(0, 120, 0);
  wanted.add(0, 150, 0);
  wanted.plan({.near_bytes = 100'000});
  EXPECT_EQ(wanted.extents().requests(), 1U);
  EXPECT_EQ(wanted.extents().pieces().size(), 1U) << "no gap is read up to where nothing is";
  wanted.read_all();
  wanted.expect_all_read();
}

TEST(Extents, APlanForgetsTheOneBefore) {
  Extents extents;
  std::array<std::byte, 8> memory{};
  const File file;
  for (const std::size_t count : {5, 1, 0, 3}) {
    std::vector<Read> reads(count);
    std::vector<Read*> pointers;
    for (std::size_t i = 0; i < count; ++i) {
      reads[i].file = &file;
      reads[i].offset = i * 100;
      reads[i].size = 8;
      reads[i].destination = memory.data();
      pointers.push_back(&reads[i]);
    }
    extents.plan(pointers, {});
    EXPECT_EQ(extents.pieces().size(), count);
    EXPECT_EQ(extents.requests(), count);
    extents.complete();
  }
}

TEST(Extents, PiecesCarryTheFlagOfTheirRead) {
  WantedExtents wanted;
  const std::atomic<bool> cancelled{false};
  wanted.add(0, 0, 10).cancelled = &cancelled;
  wanted.add(0, 20, 10).cancelled = &cancelled;
  wanted.plan({.near_bytes = 10});
  ASSERT_EQ(wanted.extents().pieces().size(), 3U);
  for (const Read& piece : wanted.extents().pieces()) EXPECT_EQ(piece.cancelled, &cancelled);
}

}  // namespace
}  // namespace penstock::testing
