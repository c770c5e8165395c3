// Which reads become one request, where their bytes go, and who is told of an error.
#include "core/io/extents.h"

#include "core/base/error.h"
#include "tests/native/core/io/wanted_read.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <random>

namespace penstock::testing {
namespace {

constexpr std::uint64_t kFileBytes = 40'000;

/// Reads of three files, each with memory of its own that is exactly as large.
class WantedExtents {
 public:
  Read& add(std::size_t file, std::uint64_t offset, std::uint64_t size) {
    Read& read = wanted_.emplace_back(files_[file], offset, size).read;
    read.owner = &read;
    return read;
  }
  /// How many requests it takes.
  std::size_t plan(const ExtentRules& rules) {
    std::vector<Read*> pointers = pointers_to(wanted_);
    extents_.plan(pointers, rules);
    return extents_.requests();
  }
  void bring(Read& piece) const {
    for (std::uint64_t i = 0; i < piece.size; ++i) {
      piece.destination[i] = static_cast<std::byte>(byte_at(piece.offset + i, seed_of(piece)));
    }
  }
  /// As a store would that has no errors. Every read has its bytes then.
  void read_all() {
    for (Read& piece : extents_.pieces()) bring(piece);
    extents_.complete();
    expect_all_read();
  }
  /// Reads all but the pieces that have a byte of [begin, end), which end as `outcome`.
  void read_all_but(std::uint64_t begin, std::uint64_t end, Outcome outcome) {
    for (Read& piece : extents_.pieces()) {
      if (piece.offset >= end || begin >= piece.offset + piece.size) {
        bring(piece);
      } else if (outcome == Outcome::Failed) {
        piece.fail(std::make_exception_ptr(Error(ErrorKind::IoError, "bad sector")));
      } else {
        piece.outcome = outcome;
      }
    }
    extents_.complete();
  }
  void expect_all_read() const {
    for (const WantedRead& one : wanted_) EXPECT_TRUE(one.right(seed_of(one.read))) << one.read.offset;
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
  /// Whether a byte of the piece is one that some read asked for.
  [[nodiscard]] bool is_wanted(const Read& piece) const {
    return std::any_of(wanted_.begin(), wanted_.end(), [&](const WantedRead& one) {
      return one.read.file == piece.file && one.read.offset < piece.offset + piece.size &&
             piece.offset < one.read.offset + one.read.size;
    });
  }
  [[nodiscard]] bool is_owner(const void* owner) const {
    return std::any_of(wanted_.begin(), wanted_.end(), [&](const WantedRead& one) { return owner == &one.read; });
  }
  std::span<Read> pieces() { return extents_.pieces(); }
  void complete() { extents_.complete(); }
  void clear() { wanted_.clear(); }

 private:
  [[nodiscard]] unsigned seed_of(const Read& read) const { return static_cast<unsigned>(read.file - files_.data()); }

  std::array<File, 3> files_;
  std::deque<WantedRead> wanted_;
  Extents extents_;
};

TEST(Extents, RandomReadsGetTheirBytesByRequestsThatKeepTheRules) {
  std::mt19937_64 random(8);
  WantedExtents wanted;
  for (int round = 0; round < 3000; ++round) {
    const ExtentRules rules{.near_bytes = std::array{0U, 1U, 17U, 300U, 5'000U}[random() % 5],
                            .block_bytes = std::array{1U, 64U, 4'096U}[random() % 3],
                            .most_bytes = std::array{1U, 500U, 4'000U, 1U << 20}[random() % 4]};
    wanted.clear();
    const std::uint64_t spread = std::array<std::uint64_t, 3>{50, 2'000, kFileBytes - 600}[random() % 3];
    for (std::uint64_t i = 1 + random() % 40; i > 0; --i) {
      wanted.add(random() % 3, random() % spread, random() % std::array{1U, 20U, 600U}[random() % 3]);
    }
    const std::size_t requests = wanted.plan(rules);
    const auto runs = wanted.runs();
    EXPECT_LE(runs.size(), requests) << "requests may touch; within one no piece is missing, and files are apart";
    for (const Read& piece : wanted.pieces()) EXPECT_TRUE(piece.size > 0 && wanted.is_owner(piece.owner));
    for (const auto& run : runs) {
      for (std::size_t i = 0; i < run.size(); ++i) {
        if (wanted.is_wanted(*run[i])) continue;
        ASSERT_TRUE(0 < i && i + 1 < run.size()) << "a request neither begins nor ends with bytes that nobody needs";
        const std::uint64_t block = rules.block_bytes;
        const std::uint64_t begin = (run[i]->offset + block - 1) / block * block;
        const std::uint64_t end = (run[i]->offset + run[i]->size) / block * block;
        EXPECT_TRUE(end <= begin || end - begin <= rules.near_bytes);
      }
    }
    wanted.read_all();
    if (HasFailure()) FAIL() << "round " << round;
  }
}

TEST(Extents, WhatIsAdjacentOverlappingNestedOrEqualIsOneRequestAndReadOnceAndNothingCostsNothing) {
  WantedExtents wanted;
  // Adjacent to both, overlapping two, nested, equal, and all of it.
  for (const auto& [offset, size] :
       {std::pair{300, 100}, {100, 100}, {200, 100}, {150, 100}, {110, 20}, {100, 100}, {100, 300}}) {
    wanted.add(0, offset, size);
  }
  EXPECT_EQ(wanted.plan({}), 1U);
  EXPECT_EQ(wanted.runs().size(), 1U);
  std::uint64_t bytes = 0;
  for (const Read& piece : wanted.pieces()) bytes += piece.size;
  EXPECT_EQ(bytes, 300U);
  wanted.read_all();
  wanted.clear();
  for (const std::uint64_t at : {0, 120, 150, 5'000}) wanted.add(0, at, 0);
  wanted.add(1, 7, 0);
  EXPECT_EQ(wanted.plan({.near_bytes = 100'000}), 0U);
  EXPECT_EQ(wanted.pieces().size(), 0U);
  wanted.add(0, 100, 50);
  EXPECT_EQ(wanted.plan({.near_bytes = 100'000}), 1U);
  EXPECT_EQ(wanted.pieces().size(), 1U) << "no gap is read up to where nothing is";
  wanted.read_all();
}

TEST(Extents, GapsAreReadUpToNearBytesBetweenWholeBlocksAndUpToTheShareThatMayBeUnwanted) {
  const auto requests = [](std::vector<std::uint64_t> at, std::uint64_t bytes, const ExtentRules& rules) {
    WantedExtents wanted;
    for (const std::uint64_t each : at) wanted.add(0, each, bytes);
    const std::size_t count = wanted.plan(rules);
    EXPECT_EQ(wanted.runs().size(), count);
    wanted.read_all();
    return count;
  };
  for (const std::uint64_t gap : {0U, 1U, 64U, 65U}) {
    EXPECT_EQ(requests({1'000, 1'050 + gap}, 50, {.near_bytes = 64}), gap <= 64 ? 1U : 2U) << gap;
  }
  const auto of_blocks = [&](std::uint64_t end, std::uint64_t next, std::uint64_t near_bytes) {
    return requests({end - 10, next}, 10, {.near_bytes = near_bytes, .block_bytes = 4'096});
  };
  EXPECT_EQ(of_blocks(100, 4'000, 0), 1U) << "in one block";
  EXPECT_EQ(of_blocks(100, 8'000, 0), 1U) << "in blocks that touch";
  EXPECT_EQ(of_blocks(4'096, 4'096, 0), 1U);
  EXPECT_EQ(of_blocks(4'096, 8'192, 0), 2U) << "a block lies between";
  EXPECT_EQ(of_blocks(100, 8'192, 4'095), 2U);
  EXPECT_EQ(of_blocks(100, 8'192, 4'096), 1U);
  EXPECT_EQ(of_blocks(1'000, 3 * 4'096 + 4'000, 8'192), 1U) << "almost two blocks more than what is near";
  const std::vector<std::uint64_t> spread{0, 150, 300, 1'000, 2'000};
  EXPECT_EQ(requests(spread, 100, {.near_bytes = 1'000}), 1U);
  EXPECT_EQ(requests(spread, 100, {.near_bytes = 1'000, .most_unwanted = 50}), 3U) << "50 are taken, 600 and 900 not";
  EXPECT_EQ(requests(spread, 100, {.near_bytes = 1'000, .most_unwanted = 24}), 4U) << "50 of 250 is, 100 of 400 is not";
}

TEST(Extents, OnlyASingleReadIsLongerThanMostBytes) {
  WantedExtents wanted;
  for (std::uint64_t i = 0; i < 20; ++i) wanted.add(0, i * 100, 100);
  wanted.add(1, 0, 5'000);
  wanted.add(1, 100, 200);  // its bytes come with the one that is too long anyway
  wanted.add(1, 5'000, 100);
  EXPECT_EQ(wanted.plan({.most_bytes = 1'000}), 2U + 2U);
  wanted.read_all();
  wanted.clear();
  for (std::uint64_t i = 0; i < 30; ++i) wanted.add(0, i * 50, 300);  // what lies across a limit is read again
  wanted.plan({.most_bytes = 700});
  for (const auto& run : wanted.runs()) {
    EXPECT_LE(run.back()->offset + run.back()->size - run.front()->offset, 700U);
  }
  wanted.read_all();
}

TEST(Extents, AnOutcomeReachesTheReadsWhoseBytesThePieceBringsAndNoOthers) {
  for (const Outcome outcome : {Outcome::Failed, Outcome::NotAtHand}) {
    WantedExtents wanted;
    const std::atomic<bool> cancelled{false};
    Read& before = wanted.add(0, 0, 100);
    Read& whole = wanted.add(0, 100, 100);
    Read& nested = wanted.add(0, 120, 20);
    Read& tail = wanted.add(0, 150, 100);   // its first half lies in `whole`
    Read& after = wanted.add(0, 200, 50);   // in the second half of `tail`
    Read& beyond = wanted.add(0, 260, 40);  // beyond a gap
    beyond.cancelled = &cancelled;
    ASSERT_EQ(wanted.plan({.near_bytes = 32}), 1U);
    for (const Read& piece : wanted.pieces()) EXPECT_EQ(piece.cancelled, piece.offset < 250 ? nullptr : &cancelled);
    wanted.read_all_but(100, 200, outcome);
    for (const Read* read : {&whole, &nested, &tail}) {
      EXPECT_EQ(read->outcome, outcome);
      EXPECT_EQ(read->error != nullptr, outcome == Outcome::Failed);
    }
    for (const Read* read : {&before, &after, &beyond}) EXPECT_EQ(read->outcome, Outcome::Done) << read->offset;
    wanted.clear();
    wanted.add(0, 0, 100);
    wanted.add(0, 110, 100);
    wanted.plan({.near_bytes = 10});
    ASSERT_EQ(wanted.pieces().size(), 3U);
    wanted.read_all_but(100, 110, outcome);  // a piece that nobody needs
    wanted.expect_all_read();
  }
}

TEST(Extents, AnErrorIsNotHiddenByAMissOfThePieceBeside) {
  for (const bool error_first : {false, true}) {
    WantedExtents wanted;
    wanted.add(0, 0, 100);
    const Read& both = wanted.add(0, 50, 100);
    wanted.plan({});
    ASSERT_EQ(wanted.pieces().size(), 2U);
    wanted.pieces()[error_first ? 1 : 0].outcome = Outcome::NotAtHand;
    wanted.pieces()[error_first ? 0 : 1].fail(std::make_exception_ptr(Error(ErrorKind::IoError, "bad")));
    wanted.complete();
    EXPECT_EQ(both.outcome, Outcome::Failed);
    EXPECT_TRUE(both.error);
  }
}

}  // namespace
}  // namespace penstock::testing
