// Packing equals its definition, worked out row by row; of packed rows each piece has its document's records, and the
// rest is zeros.
#include "layout/packed/packed.h"

#include "core/base/error.h"
#include "layout/documents/document_lengths.h"
#include "layout/packed/packing.h"
#include "tests/native/layout/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <set>

namespace penstock::testing {
namespace {

using layout::Fit;
using layout::LongDocuments;
using layout::PackedPiece;
using layout::PackedRows;
using layout::Packer;
using layout::PackingRule;
using layout::PackTable;
using layout::SpanKind;
using TablePtr = std::shared_ptr<const PackTable>;
using Lengths = std::vector<std::uint64_t>;

using Rows = std::vector<std::vector<std::pair<std::uint64_t, std::uint64_t>>>;  // (document, part) of each row

struct Piece {
  std::uint64_t document;
  std::uint64_t part;
  std::uint64_t length;
};

std::vector<Piece> cut(const PackingRule& rule, const Lengths& lengths, std::uint64_t begin, std::uint64_t end) {
  std::vector<Piece> pieces;
  for (std::uint64_t i = begin; i < end; ++i) {
    std::uint64_t left = lengths[i];
    const std::uint64_t most = rule.max_document == 0 ? rule.window : rule.max_document;
    if (left > most && rule.long_documents == LongDocuments::Drop) continue;
    if (left > most && rule.long_documents == LongDocuments::Truncate) left = most;
    for (std::uint64_t part = 0; left > 0; ++part) {
      pieces.push_back({i, part, std::min(left, most)});
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
    const auto takes = [&](std::size_t row, std::uint64_t wanted) {
      if (rooms[row] < wanted) return false;
      if (rule.max_documents == 0 || rooms[row] == wanted)
        return rule.max_documents == 0 || group[row].size() < rule.max_documents;
      return group[row].size() + 2 <= rule.max_documents;  // and what is left of the row
    };
    for (const Piece& piece : pieces) {
      const std::uint64_t wanted = (piece.length + rule.multiple_of - 1) / rule.multiple_of * rule.multiple_of;
      std::size_t best = rooms.size();
      for (std::size_t row = 0; row < rooms.size(); ++row) {
        if (!takes(row, wanted)) continue;
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
    if (random() % 3 == 0) rule.max_documents = 2 + random() % 5;
    if (random() % 3 == 0) rule.max_document = 1 + random() % rule.window;
    rule.long_documents = static_cast<LongDocuments>(random() % (rule.max_document == 0 ? 3 : 2));
    Lengths lengths(random() % 500);
    const std::uint64_t most = 1 + random() % (3 * rule.window);
    for (auto& length : lengths) length = random() % (most + 1);
    ASSERT_EQ(rows_of(pack(rule, lengths)), by_definition(rule, lengths)) << round;
  }
}

TEST(PackingTest, RowsWithOnePlaceLeftTakeOnlyWhatFillsThem) {
  // Rows of four that are full; of three where something is left, which is the fourth.
  const PackingRule rule{.window = 40, .max_documents = 4};
  EXPECT_EQ(pack(rule, Lengths(8, 10)).row_ends, (Lengths{4, 8}));
  EXPECT_EQ(pack(rule, Lengths(8, 9)).row_ends, (Lengths{3, 6, 8}));
  for (const Fit fit : {Fit::Best, Fit::First}) {
    const PackingRule two{.window = 10, .fit = fit, .max_documents = 2};
    EXPECT_EQ(rows_of(pack(two, {6, 5, 4, 3, 5})), (Rows{{{0, 0}, {2, 0}}, {{1, 0}, {4, 0}}, {{3, 0}}}));
  }
}

TEST(PackingTest, ManyPiecesAreSortedByAnotherWayToTheSameRows) {
  std::mt19937_64 random(2);
  for (const std::uint64_t window : {5U, 1'000U, 5'000U}) {  // one digit, two
    Lengths lengths(3'000);
    for (auto& length : lengths) length = 1 + random() % window;
    for (const Fit fit : {Fit::Best, Fit::First}) {
      const PackingRule rule{.window = window, .fit = fit};
      ASSERT_EQ(rows_of(pack(rule, lengths)), by_definition(rule, lengths)) << window;
    }
  }
}

TEST(PackingTest, CountsSayWhatIsNotThere) {
  const struct {
    LongDocuments how;
    std::tuple<std::uint64_t, std::uint64_t, std::uint64_t> counts;
  } kCounts[] = {
      {LongDocuments::Split, {40, 1, 0}}, {LongDocuments::Drop, {15, 2, 25}}, {LongDocuments::Truncate, {25, 1, 15}}};
  for (const auto& [how, counts] : kCounts) {
    const PackedRows rows = pack({.window = 10, .long_documents = how}, {0, 5, 25, 10});
    EXPECT_EQ(std::tuple(rows.records, rows.left_out, rows.cut), counts);
  }
}

TEST(PackingTest, WhatCannotBeIsNamed) {
  const auto refused = [](const PackingRule& rule, const std::string& words, const Lengths& lengths = {}) {
    expect_error([&] { pack(rule, lengths); }, ErrorKind::InvalidArgument, words);
  };
  refused({.window = 0}, "window=0");
  refused({.window = layout::kMostPackedWindow + 1}, "16,777,217");
  refused({.window = 10, .group = 0}, "group=0");
  refused({.window = 10, .multiple_of = 0}, "multiple_of=0");
  refused({.window = 10, .multiple_of = 4}, "multiple_of=4: the window 10");
  refused({.window = 10, .long_documents = LongDocuments::Refuse}, "document 1 has 11 records", {1, 11});
  refused({.window = 1}, "too many pieces of 1: raise window", {PackedPiece::kMostParts + 1});
  refused({.window = 9, .max_documents = 1}, "max_documents=1");
  refused({.window = 9, .max_document = 10}, "max_document=10: a row has 9");
  refused({.window = 9, .long_documents = LongDocuments::Drop, .max_document = 9}, "cut=\"drop\"");
  refused({.window = 9, .max_document = 1}, "too many pieces of 1: raise max_document", {PackedPiece::kMostParts + 1});
  EXPECT_EQ(layout::parse_fit("first"), Fit::First);
  EXPECT_EQ(layout::parse_long("drop"), LongDocuments::Drop);
  EXPECT_THROW(layout::parse_fit("worst"), Error);
  EXPECT_THROW(layout::parse_long("keep"), Error);
}

// ---- rows of a dataset

TablePtr pack(const layout::DatasetPtr& dataset, const PackingRule& rule, std::uint64_t step = 1) {
  layout::DatasetPacker packer(dataset, rule, {});
  while (packer.step(step)) {
  }
  const layout::PackHeader header = packer.header();
  return std::make_shared<const PackTable>(header, std::move(packer.rows()));
}

TEST(PackedTest, LengthsAreThoseOfDocumentsOverShards) {
  const Model model = some_documents();
  Lengths all(12);
  layout::read_document_lengths(*model.dataset(), 0, all, {});
  EXPECT_EQ(all, (Lengths{3, 0, 9, 2, 4, 1, 25, 0, 5, 5, 5, 10}));
  Lengths some(4);
  layout::read_document_lengths(*model.dataset(), 5, some, {});
  EXPECT_EQ(some, (Lengths{1, 25, 0, 5}));
  EXPECT_THROW(layout::read_document_lengths(*model.dataset(), 9, some, {}), Error);
}

void expect_rows(const Model& model, const Source& source, const PackingRule& rule) {
  std::vector<std::uint64_t> begins;  // of each document in the model's stream
  std::uint64_t end = 0;
  for (const ModelShard& shard : model.shards()) {
    for (const ModelSpan& span : shard.spans) {
      begins.push_back(end);
      end += span.records;
    }
  }
  std::set<std::uint64_t> seen;
  for (std::uint64_t i = 0; i < source.info().size; ++i) {
    const Driven row = driven(source, i);
    std::vector<std::byte> wanted(2 * rule.window);  // zeros where no piece is
    for (const Span& span : row.row.spans) {
      const ModelSpan& document = model.shards()[span.shard].spans[span.entry];
      ASSERT_EQ(span.start % rule.multiple_of, 0U);
      ASSERT_EQ(entry_of(span), document.entry);
      EXPECT_EQ(span.begins, span.offset == 0);
      const auto offset = static_cast<std::uint64_t>(span.offset);
      EXPECT_EQ(span.ends, offset + span.stop - span.start == document.records);
      std::uint64_t record = begins[model.dataset()->span_starts[span.shard] + span.entry] + offset;
      for (std::uint64_t at = span.start; at < span.stop; ++at, ++record) {
        std::memcpy(&wanted[2 * at], model.record(record).data(), 2);
        ASSERT_TRUE(seen.insert(record).second) << "record " << record << " twice";
      }
    }
    ASSERT_EQ(std::memcmp(row.row.records, wanted.data(), wanted.size()), 0);
  }
  if (rule.long_documents == LongDocuments::Split) {
    EXPECT_EQ(seen.size(), model.records());
  }
}

TEST(PackedTest, EveryRecordIsThereOnceWithItsDocumentAndTheRestIsZero) {
  const Model model = some_documents();
  for (const PackingRule& rule :
       {PackingRule{.window = 10}, PackingRule{.window = 25, .fit = layout::Fit::First}, PackingRule{.window = 1},
        PackingRule{.window = 12, .multiple_of = 4}, PackingRule{.window = 10, .group = 2},
        PackingRule{.window = 8, .long_documents = LongDocuments::Truncate},
        PackingRule{.window = 8, .long_documents = LongDocuments::Drop},
        PackingRule{.window = 12, .multiple_of = 4, .max_document = 3},
        PackingRule{.window = 12, .long_documents = LongDocuments::Truncate, .max_document = 5}}) {
    const auto source = layout::make_packed(model.dataset(), pack(model.dataset(), rule));
    expect_rows(model, *source, rule);
  }
}

TEST(PackedTest, NeighboursOfAShardAreOneRead) {
  // Documents of one length go into rows one after the other; the fourth of the second shard begins a row alone.
  const Model model(SpanKind::Compact, {shard_of({4, 4, 4}), shard_of({4, 4, 4, 4})});
  const auto source = layout::make_packed(model.dataset(), pack(model.dataset(), {.window = 12}));
  expect_rows(model, *source, {.window = 12});
  ASSERT_EQ(source->info().size, 3U);
  for (std::uint64_t i = 0; i < 3; ++i) {
    const Driven row = driven(*source, i, Parts::Records);
    EXPECT_EQ(row.bytes_read("stream.bin"), i < 2 ? 24U : 8U);
    EXPECT_EQ(row.reads_of("stream.bin"), 1U);
  }
  // A gap, in the file or in the row, ends a read: 4 and 3 lie apart in the shard, and padding lies between the pieces.
  const Model apart(SpanKind::Compact, {shard_of({4, 1, 3})});
  const Model odd(SpanKind::Compact, {shard_of({3, 3})});
  const PackingRule padded{.window = 8, .multiple_of = 4};
  expect_rows(apart, *layout::make_packed(apart.dataset(), pack(apart.dataset(), {.window = 8})), {.window = 8});
  expect_rows(odd, *layout::make_packed(odd.dataset(), pack(odd.dataset(), padded)), padded);
}

TEST(PackedTest, StepsOfAnySizeGiveTheSameRowsAndGroupsDoNotCrossShards) {
  const Model model = some_documents();
  const PackingRule rule{.window = 10, .group = 2};
  const TablePtr all = pack(model.dataset(), rule, 1'000);
  EXPECT_EQ(pack(model.dataset(), rule, 1)->header(), all->header());
  // The first shard alone: its rows come first, and are the same.
  const Model first(SpanKind::Compact, {model.shards()[0]});
  const auto part = layout::make_packed(first.dataset(), pack(first.dataset(), rule));
  const auto whole = layout::make_packed(model.dataset(), all);
  for (std::uint64_t i = 0; i < part->info().size; ++i) {
    ASSERT_EQ(driven(*part, i).memory, driven(*whole, i).memory) << i;
  }
}

TEST(PackedTest, IdentityIsCanonicalJsonOfTheRule) {
  const Model model = some_documents();
  const auto source = layout::make_packed(model.dataset(), pack(model.dataset(), {.window = 10}));
  EXPECT_EQ(source->info().identity.view,
            R"({"fit":"best","group":65536,"kind":"packed","long":"split","multiple_of":1,"window":10})");
  EXPECT_EQ(source->info().packed_multiple, 1U);
  const auto cut = layout::make_packed(model.dataset(), pack(model.dataset(), {.window = 10, .max_document = 7}));
  const auto few = layout::make_packed(model.dataset(), pack(model.dataset(), {.window = 10, .max_documents = 7}));
  const auto ahead = layout::make_packed(model.dataset(), pack(model.dataset(), {.window = 10}), {}, 1);
  EXPECT_NE(ahead->info().identity.view.find(R"("lookahead":1,)"), std::string::npos);
  EXPECT_NE(ahead->info().identity.view.find(R"("window":9)"), std::string::npos);
  EXPECT_EQ(ahead->info().shape.length, 10U);
  expect_error([&] { layout::make_packed(model.dataset(), pack(model.dataset(), {.window = 10}), {}, 10); },
               ErrorKind::InvalidArgument, "lookahead=10");
  EXPECT_NE(few->info().identity.view.find(R"("max_documents":7,)"), std::string::npos);
  EXPECT_EQ(
      cut->info().identity.view,
      R"({"cut":"split","fit":"best","group":65536,"kind":"packed","max_document":7,"multiple_of":1,"window":10})");
}

TEST(PackedTest, WhatCannotBePackedSaysWhyAndAnIndexThatChangedSinceIsCorrupt) {
  const auto expect_refused = [](const Model& model, const std::string& words) {
    expect_error([&] { layout::make_packed(model.dataset(), pack(model.dataset(), {.window = 4})); },
                 ErrorKind::InvalidArgument, words);
  };
  expect_refused(Model(SpanKind::None, {shard_of({3})}), "token stream");
  expect_refused(Model(SpanKind::Ids, {{{}, {0}, {"x"}}}), "convert");
  expect_refused(Model(SpanKind::Opaque, {{{}, {}, {"a"}}}), "without records");
  expect_refused(Model(SpanKind::Compact, {shard_of({0, 0})}), "none of its 2 documents");
  const Model before(SpanKind::Compact, {shard_of({3, 4})});
  const Model after(SpanKind::Compact, {shard_of({7, 0})});
  const auto source = layout::make_packed(after.dataset(), pack(before.dataset(), {.window = 7}));
  expect_error([&] { driven(*source, 0); }, ErrorKind::Corruption, "changed since");
}

}  // namespace
}  // namespace penstock::testing
