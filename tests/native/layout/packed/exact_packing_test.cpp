// Rows that are filled equal their definition, worked out document by document.
#include "layout/packed/exact_packing.h"

#include "core/base/error.h"
#include "tests/native/layout/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <random>

namespace penstock::testing {
namespace {

using layout::ExactPacker;
using layout::Fill;
using layout::Fit;
using layout::LongDocuments;
using layout::PackedRows;
using layout::PackingRule;
using layout::Rooms;
using Lengths = std::vector<std::uint64_t>;

struct ExactPart {
  std::uint64_t document;
  std::uint64_t part;
  std::uint64_t length;
};

struct ExactRows {
  std::vector<std::vector<std::pair<std::uint64_t, std::uint64_t>>> rows;  // (document, part)
  std::uint64_t records = 0;
  bool is_refused = false;
};

std::vector<ExactPart> exact_parts_of(const PackingRule& rule, std::uint64_t document, std::uint64_t length) {
  if (rule.max_document == 0)
    return length == 0 ? std::vector<ExactPart>{} : std::vector<ExactPart>{{document, 0, length}};
  if (rule.long_documents == LongDocuments::Truncate) length = std::min(length, rule.max_document);
  std::vector<ExactPart> parts;
  for (std::uint64_t at = 0; at < length; at += rule.max_document) {
    parts.push_back({document, at / rule.max_document, std::min(rule.max_document, length - at)});
  }
  return parts;
}

// The next one to come, by a look at all that wait.
std::optional<std::size_t> chosen(const PackingRule& rule, const std::vector<ExactPart>& waiting, std::uint64_t room,
                                  bool is_last) {
  std::optional<std::size_t> found;
  const auto better = [&](std::size_t i, bool longest) {
    if (!found) return true;
    return longest ? waiting[i].length > waiting[*found].length : waiting[i].length < waiting[*found].length;
  };
  if (rule.fit == Fit::Next) return is_last && waiting.front().length < room ? found : 0;
  for (std::size_t i = 0; i < waiting.size() && !is_last; ++i) {
    if (waiting[i].length <= room && better(i, true)) found = i;
  }
  for (std::size_t i = 0, had = found ? 1 : 0; i < waiting.size() && had == 0; ++i) {
    if ((!is_last || waiting[i].length >= room) && better(i, false)) found = i;
  }
  return found;
}

ExactRows exact_by_definition(const PackingRule& rule, const Lengths& lengths) {
  ExactRows out;
  std::vector<ExactPart> coming;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const std::vector<ExactPart> parts = exact_parts_of(rule, i, lengths[i]);
    coming.insert(coming.end(), parts.begin(), parts.end());
  }
  std::vector<ExactPart> waiting;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> row;
  std::uint64_t room = rule.window;
  std::size_t next = 0;
  bool is_short = false;  // those that came together last were the last ones
  const auto come = [&](std::size_t count) {
    for (; count > 0 && next < coming.size(); ++next, --count) waiting.push_back(coming[next]);
    is_short = count > 0;
  };
  for (;;) {
    if (rule.fit == Fit::Next && waiting.empty()) come(1);
    while (rule.fit == Fit::Best && waiting.size() < rule.buffer && next < coming.size()) come(rule.refill);
    if (waiting.empty()) return out;
    const bool is_last = row.size() + 1 == rule.max_documents;
    const std::optional<std::size_t> i = chosen(rule, waiting, room, is_last);
    if (!i) {
      const bool is_over = rule.fit == Fit::Best && next == coming.size() && (is_short || waiting.size() < rule.buffer);
      if (!is_over) {
        out.is_refused = true;
        return out;
      }
      if (row.empty()) return out;
      row.clear();
      room = rule.window;
      continue;
    }
    row.emplace_back(waiting[*i].document, waiting[*i].part);
    room -= std::min(room, waiting[*i].length);
    waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(*i));
    if (room > 0) continue;
    out.rows.push_back(std::exchange(row, {}));
    room = rule.window;
  }
}

PackedRows pack_exactly(const PackingRule& rule, const Lengths& lengths, std::size_t step = 1'000) {
  PackedRows out;
  ExactPacker packer(rule);
  for (std::size_t at = 0; at < lengths.size(); at += step) {
    packer.add(at, std::span(lengths).subspan(at, std::min(step, lengths.size() - at)), out);
  }
  packer.end_shard(out);
  return out;
}

auto exact_rows_of(const PackedRows& packed) {
  decltype(ExactRows::rows) rows;
  std::uint64_t at = 0;
  for (const std::uint64_t end : packed.row_ends) {
    auto& row = rows.emplace_back();
    for (; at < end; ++at) row.emplace_back(packed.pieces[at].document(), packed.pieces[at].part());
  }
  EXPECT_EQ(at, packed.pieces.size());
  return rows;
}

PackingRule any_rule(std::mt19937_64& random) {
  PackingRule rule{.window = 1 + random() % 60, .long_documents = LongDocuments::Truncate, .fill = Fill::Exact};
  if (random() % 2 == 0) {
    rule.fit = Fit::Next;
  } else {
    rule.buffer = 1 + random() % 30;
    rule.refill = 1 + random() % 9;
  }
  if (random() % 3 == 0) {
    rule.max_document = 1 + random() % rule.window;
    if (random() % 2 == 0) rule.long_documents = LongDocuments::Split;
  }
  if (random() % 3 == 0) rule.max_documents = 1 + random() % 12;
  return rule;
}

TEST(ExactPackingTest, RowsAreThoseOfTheDefinitionForEveryRuleAndStep) {
  std::mt19937_64 random(1);
  int refused = 0;
  for (int round = 0; round < 1'000; ++round) {
    const PackingRule rule = any_rule(random);
    Lengths lengths(random() % 300);
    const std::uint64_t most = 1 + random() % (3 * rule.window);
    for (auto& length : lengths) length = random() % (most + 1);
    const ExactRows wanted = exact_by_definition(rule, lengths);
    if (wanted.is_refused) {
      ++refused;
      expect_error([&] { pack_exactly(rule, lengths); }, ErrorKind::InvalidArgument, "raise max_documents");
      continue;
    }
    const PackedRows packed = pack_exactly(rule, lengths);
    ASSERT_EQ(exact_rows_of(packed), wanted.rows) << round;
    ASSERT_EQ(pack_exactly(rule, lengths, 1 + random() % 7), packed) << round;
    // All rows are full, and what is in none is counted.
    std::uint64_t all = 0;
    std::vector<bool> has_piece(lengths.size());
    for (const std::uint64_t length : lengths) all += length;
    for (const layout::PackedPiece& piece : packed.pieces) has_piece[piece.document()] = true;
    ASSERT_EQ(packed.records, wanted.rows.size() * rule.window);
    ASSERT_EQ(packed.records + packed.cut, all);
    ASSERT_EQ(packed.left_out, static_cast<std::uint64_t>(std::count(has_piece.begin(), has_piece.end(), false)));
  }
  EXPECT_GT(refused, 20);
  EXPECT_LT(refused, 300);
}

TEST(ExactPackingTest, InOrderTheLastDocumentIsCutAndTheNextRowBeginsWithTheNext) {
  PackingRule rule{.window = 10, .fit = Fit::Next, .long_documents = LongDocuments::Truncate, .fill = Fill::Exact};
  const Lengths lengths{4, 4, 9, 25, 3, 7, 6};
  EXPECT_EQ(exact_rows_of(pack_exactly(rule, lengths)),
            (decltype(ExactRows::rows){{{0, 0}, {1, 0}, {2, 0}}, {{3, 0}}, {{4, 0}, {5, 0}}}));
  EXPECT_EQ(pack_exactly(rule, lengths).cut, 7U + 15U + 6U);
  EXPECT_EQ(pack_exactly(rule, lengths).left_out, 1U);
  rule.max_document = 8;
  EXPECT_EQ(exact_rows_of(pack_exactly(rule, lengths)),
            (decltype(ExactRows::rows){{{0, 0}, {1, 0}, {2, 0}}, {{3, 0}, {4, 0}}, {{5, 0}, {6, 0}}}));
  rule.max_document = 0;
  rule.max_documents = 2;
  expect_error([&] { pack_exactly(rule, lengths); }, ErrorKind::InvalidArgument,
               "max_documents=2: a row, after document 1, has 8 of 10 records and no place left: raise max_documents");
}

TEST(ExactPackingTest, FromABufferTheLongestThatFitsComesElseTheShortestIsCut) {
  const PackingRule rule{
      .window = 10, .long_documents = LongDocuments::Truncate, .fill = Fill::Exact, .buffer = 3, .refill = 1};
  // 6 of 6, 3, 5; nothing of 3, 5, 20 is 4 but 3, then 5 is cut to 1; of 20, 8 and 8 comes 8, then 8 is cut to 2; 20.
  EXPECT_EQ(exact_rows_of(pack_exactly(rule, {6, 3, 5, 20, 8, 8})),
            (decltype(ExactRows::rows){{{0, 0}, {1, 0}, {2, 0}}, {{4, 0}, {5, 0}}, {{3, 0}}}));
  PackingRule few = rule;
  few.max_documents = 2;
  expect_error(
      [&] {
        pack_exactly(few, {4, 2, 3, 1});
      },
      ErrorKind::InvalidArgument,
      "max_documents=2: a row, after document 0, has 4 of 10 records and one place left, and the longest of the "
      "3 documents in the buffer has 3: raise max_documents or buffer");
}

TEST(ExactPackingTest, WhatIsOfAnotherFillIsNamed) {
  const auto refused = [](PackingRule rule, const std::string& words) {
    rule.window = 8;
    expect_error([&] { layout::check_packing_rule(rule); }, ErrorKind::InvalidArgument, words);
  };
  constexpr auto kTruncate = LongDocuments::Truncate;
  refused({.fit = Fit::Next}, "fit=\"next\"");
  refused({.buffer = 3}, "buffer=3");
  refused({.fit = Fit::First, .long_documents = kTruncate, .fill = Fill::Exact}, "fit=\"first\"");
  refused({.long_documents = kTruncate, .fill = Fill::Exact}, "buffer=0");
  refused({.fit = Fit::Next, .long_documents = kTruncate, .fill = Fill::Exact, .buffer = 1}, "buffer=1");
  refused({.long_documents = kTruncate, .fill = Fill::Exact, .buffer = 1U << 25, .refill = 1}, "33,554,432");
  refused({.fit = Fit::Next, .long_documents = kTruncate, .multiple_of = 4, .fill = Fill::Exact}, "multiple_of=4");
  refused({.fit = Fit::Next, .fill = Fill::Exact}, "long=\"split\"");
  EXPECT_EQ(layout::parse_fill("exact"), Fill::Exact);
  EXPECT_THROW(layout::parse_fill("some"), Error);
}

TEST(RoomsTest, TheLeastAndTheMostAreThoseOfAList) {
  std::mt19937_64 random(3);
  for (const std::uint64_t size : {1U, 63U, 64U, 65U, 4'096U, 5'000U}) {
    Rooms rooms(size);
    std::vector<bool> there(size + 1);
    for (int round = 0; round < 2'000; ++round) {
      const std::uint64_t room = random() % (size + 1);
      const bool is_set = random() % 3 == 0;
      is_set ? rooms.set(room) : rooms.clear(room);
      there[room] = is_set;
      const std::uint64_t from = random() % (size + 1);
      std::uint64_t least = from;
      while (least <= size && !there[least]) ++least;
      ASSERT_EQ(rooms.least(from), least > size ? Rooms::kNone : least);
      std::uint64_t most = from + 1;
      while (most > 0 && !there[most - 1]) --most;
      ASSERT_EQ(rooms.most(from), most == 0 ? Rooms::kNone : most - 1);
    }
  }
}

}  // namespace
}  // namespace penstock::testing
