// Packing equals its definition, worked out row by row; the same for groups, pieces and multiples.
#include "layout/packed/packing.h"

#include "core/base/error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <tuple>

namespace penstock::testing {
namespace {

using layout::Fit;
using layout::LongDocuments;
using layout::PackedPiece;
using layout::PackedRows;
using layout::Packer;
using layout::PackingRule;
using Lengths = std::vector<std::uint64_t>;

struct Piece {
  std::uint64_t document;
  std::uint64_t part;
  std::uint64_t length;
};
using Rows = std::vector<std::vector<std::pair<std::uint64_t, std::uint64_t>>>;  // (document, part) of each row

std::vector<Piece> cut(const PackingRule& rule, const Lengths& lengths, std::uint64_t begin, std::uint64_t end) {
  std::vector<Piece> pieces;
  for (std::uint64_t i = begin; i < end; ++i) {
    std::uint64_t left = lengths[i];
    if (left > rule.window && rule.long_documents == LongDocuments::Drop) continue;
    if (left > rule.window && rule.long_documents == LongDocuments::Truncate) left = rule.window;
    for (std::uint64_t part = 0; left > 0; ++part) {
      pieces.push_back({i, part, std::min(left, rule.window)});
      left -= pieces.back().length;
    }
  }
  return pieces;
}

// The definition: looks at every row for every piece.
Rows by_definition(const PackingRule& rule, const Lengths& lengths) {
  Rows rows;
  for (std::uint64_t begin = 0; begin < lengths.size(); begin += rule.group) {
    std::vector<Piece> pieces = cut(rule, lengths, begin, std::min<std::uint64_t>(begin + rule.group, lengths.size()));
    std::stable_sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.length > b.length; });
    std::vector<std::uint64_t> rooms;
    Rows group;
    for (const Piece& piece : pieces) {
      const std::uint64_t wanted = (piece.length + rule.multiple_of - 1) / rule.multiple_of * rule.multiple_of;
      std::size_t best = rooms.size();
      for (std::size_t row = 0; row < rooms.size(); ++row) {
        if (rooms[row] < wanted) continue;
        if (best == rooms.size() || (rule.fit == Fit::Best && rooms[row] < rooms[best])) best = row;
      }
      if (best == rooms.size()) {
        rooms.push_back(rule.window);
        group.emplace_back();
      }
      rooms[best] -= wanted;
      group[best].emplace_back(piece.document, piece.part);
    }
    rows.insert(rows.end(), group.begin(), group.end());
  }
  return rows;
}

Rows rows_of(const PackedRows& packed) {
  Rows rows;
  std::uint64_t at = 0;
  for (const std::uint64_t end : packed.row_ends) {
    auto& row = rows.emplace_back();
    for (; at < end; ++at) row.emplace_back(packed.pieces[at].document(), packed.pieces[at].part());
  }
  EXPECT_EQ(at, packed.pieces.size());
  return rows;
}

PackedRows pack(const PackingRule& rule, const Lengths& lengths) {
  PackedRows out;
  Packer(rule).add(0, lengths, out);
  return out;
}

TEST(PackingTest, RowsAreThoseOfTheDefinitionForEveryRule) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 400; ++round) {
    PackingRule rule;
    rule.multiple_of = std::array<std::uint64_t, 4>{1, 1, 4, 7}.at(random() % 4);
    rule.window = rule.multiple_of * (1 + random() % 40);
    rule.group = std::array<std::uint64_t, 5>{1, 3, 64, 300, 65'536}.at(random() % 5);
    rule.fit = random() % 2 == 0 ? Fit::Best : Fit::First;
    rule.long_documents = static_cast<LongDocuments>(random() % 3);
    Lengths lengths(random() % 500);
    const std::uint64_t most = 1 + random() % (3 * rule.window);
    for (auto& length : lengths) length = random() % (most + 1);
    ASSERT_EQ(rows_of(pack(rule, lengths)), by_definition(rule, lengths)) << round;
  }
}

TEST(PackingTest, ManyPiecesAreSortedByAnotherWayToTheSameRows) {
  std::mt19937_64 random(2);
  for (const std::uint64_t window : {5U, 1'000U, 5'000U}) {  // one digit, two
    for (const Fit fit : {Fit::Best, Fit::First}) {
      Lengths lengths(3'000);
      for (auto& length : lengths) length = 1 + random() % window;
      const PackingRule rule{.window = window, .fit = fit};
      ASSERT_EQ(rows_of(pack(rule, lengths)), by_definition(rule, lengths)) << window;
    }
  }
}

TEST(PackingTest, AGroupDependsOnNoneBeforeIt) {
  std::mt19937_64 random(3);
  Lengths lengths(1'000);
  for (auto& length : lengths) length = random() % 100;
  const PackingRule rule{.window = 64, .group = 100};
  Packer packer(rule);
  PackedRows whole;
  packer.add(0, lengths, whole);
  PackedRows steps;
  for (std::uint64_t begin = 0; begin < lengths.size(); begin += 200) {
    packer.add(begin, std::span(lengths).subspan(begin, 200), steps);
  }
  EXPECT_EQ(whole, steps);
}

TEST(PackingTest, CountsSayWhatIsNotThere) {
  const Lengths lengths = {0, 5, 25, 10};
  const PackedRows split = pack({.window = 10}, lengths);
  EXPECT_EQ(std::tuple(split.records, split.left_out, split.cut), std::tuple(40U, 1U, 0U));
  const PackedRows drop = pack({.window = 10, .long_documents = LongDocuments::Drop}, lengths);
  EXPECT_EQ(std::tuple(drop.records, drop.left_out, drop.cut), std::tuple(15U, 2U, 25U));
  const PackedRows truncated = pack({.window = 10, .long_documents = LongDocuments::Truncate}, lengths);
  EXPECT_EQ(std::tuple(truncated.records, truncated.left_out, truncated.cut), std::tuple(25U, 1U, 15U));
}

std::string message_of_rule(const PackingRule& rule, const Lengths& lengths) {
  try {
    pack(rule, lengths);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::InvalidArgument);
    return error.what();
  }
  return "";
}

TEST(PackingTest, WhatCannotBeIsNamed) {
  const auto has = [](const std::string& message, const char* part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  has(message_of_rule({.window = 0}, {}), "window=0");
  has(message_of_rule({.window = layout::kMostPackedWindow + 1}, {}), "16,777,217");
  has(message_of_rule({.window = 10, .group = 0}, {}), "group=0");
  has(message_of_rule({.window = 10, .multiple_of = 0}, {}), "multiple_of=0");
  has(message_of_rule({.window = 10, .multiple_of = 4}, {}), "multiple_of=4: the window 10");
  has(message_of_rule({.window = 10, .long_documents = LongDocuments::Refuse}, {1, 11}), "document 1 has 11 records");
  has(message_of_rule({.window = 1}, {PackedPiece::kMostParts + 1}), "too many pieces");
  EXPECT_EQ(layout::parse_fit("first"), Fit::First);
  EXPECT_EQ(layout::parse_long("drop"), LongDocuments::Drop);
  EXPECT_THROW(layout::parse_fit("worst"), Error);
  EXPECT_THROW(layout::parse_long("keep"), Error);
}

// facts/training.md, section 3: waste in percent of log-normal lengths.
TEST(PackingTest, WasteIsBelowOnePercentWhereDocumentsAreAnEighthOfTheWindow) {
  std::mt19937_64 random(4);
  std::lognormal_distribution<double> distribution(std::log(160.0), 0.9);
  Lengths lengths(65'536);
  for (auto& length : lengths) length = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(distribution(random)));
  for (const Fit fit : {Fit::Best, Fit::First}) {
    const PackedRows packed = pack({.window = 2'048, .fit = fit}, lengths);
    const double waste =
        1 - static_cast<double>(packed.records) / (2'048.0 * static_cast<double>(packed.row_ends.size()));
    EXPECT_LT(waste, 0.01);
  }
}

}  // namespace
}  // namespace penstock::testing
