// Packed rows: each piece has its document's records, the rest is zeros; tables in memory and in a file give the same.
#include "layout/packed/packed.h"

#include "core/base/error.h"
#include "core/columns/column_factory.h"
#include "core/columns/column_spec.h"
#include "layout/documents/document_lengths.h"
#include "tests/native/layout/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace penstock::testing {
namespace {

using layout::LongDocuments;
using layout::PackingRule;
using layout::PackTable;
using layout::SpanKind;
using TablePtr = std::shared_ptr<const PackTable>;
using Lengths = std::vector<std::uint64_t>;

ModelShard shard_of(const Lengths& lengths) {
  ModelShard shard;
  for (const std::uint64_t length : lengths) shard.spans.push_back({length, "entry " + std::to_string(length)});
  return shard;
}

Model some_documents() {
  return {SpanKind::Compact, {shard_of({3, 0, 9, 2, 4, 1, 25}), shard_of({}), shard_of({0, 5, 5, 5, 10})}};
}

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

// First record of each document in the model's stream.
std::vector<std::uint64_t> begins_of(const Model& model) {
  std::vector<std::uint64_t> begins;
  std::uint64_t at = 0;
  for (const ModelShard& shard : model.shards()) {
    for (const ModelSpan& span : shard.spans) {
      begins.push_back(at);
      at += span.records;
    }
  }
  return begins;
}

void expect_rows(const Model& model, const Source& source, const PackingRule& rule) {
  const std::vector<std::uint64_t> begins = begins_of(model);
  const std::vector<std::byte> zeros(2);
  std::set<std::uint64_t> seen;
  for (std::uint64_t i = 0; i < source.info().size; ++i) {
    Driven driven;
    drive(source, i, driven);
    std::vector<bool> covered(rule.window);
    for (const Span& span : driven.row.spans) {
      const std::uint64_t document = model.dataset()->span_starts[span.shard] + span.entry;
      const ModelSpan& wanted = model.shards()[span.shard].spans[span.entry];
      ASSERT_EQ(span.start % rule.multiple_of, 0U);
      ASSERT_EQ(std::string(reinterpret_cast<const char*>(span.raw), span.raw_bytes), wanted.entry);
      EXPECT_EQ(span.begins, span.offset == 0);
      const auto offset = static_cast<std::uint64_t>(span.offset);
      EXPECT_EQ(span.ends, offset + span.stop - span.start == wanted.records);
      for (std::uint64_t at = span.start; at < span.stop; ++at) {
        const std::uint64_t record = begins[document] + offset + at - span.start;
        ASSERT_EQ(std::memcmp(driven.row.records + 2 * at, model.record(record).data(), 2), 0);
        ASSERT_TRUE(seen.insert(record).second) << "record " << record << " twice";
        covered[at] = true;
      }
    }
    for (std::uint64_t at = 0; at < rule.window; ++at) {
      if (covered[at]) continue;
      ASSERT_EQ(std::memcmp(driven.row.records + 2 * at, zeros.data(), 2), 0);
    }
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
        PackingRule{.window = 8, .long_documents = LongDocuments::Drop}}) {
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
    Driven driven;
    drive(*source, i, driven, Parts::Records);
    const std::uint64_t records = i < 2 ? 12 : 4;
    EXPECT_EQ(driven.bytes_read("stream.bin"), 2 * records);
    EXPECT_EQ(std::count_if(driven.reads.begin(), driven.reads.end(),
                            [](const Read& read) { return read.file->path().ends_with("stream.bin"); }),
              1);
  }
  // A gap, in the file or in the row, ends a read: 4 and 3 lie apart in the shard, and padding lies between the pieces.
  const Model apart(SpanKind::Compact, {shard_of({4, 1, 3})});
  const auto gaps = layout::make_packed(apart.dataset(), pack(apart.dataset(), {.window = 8}));
  expect_rows(apart, *gaps, {.window = 8});
  const Model odd(SpanKind::Compact, {shard_of({3, 3})});
  const PackingRule padded{.window = 8, .multiple_of = 4};
  expect_rows(odd, *layout::make_packed(odd.dataset(), pack(odd.dataset(), padded)), padded);
}

TEST(PackedTest, StepsOfAnySizeGiveTheSameRowsAndGroupsDoNotCrossShards) {
  const Model model = some_documents();
  const PackingRule rule{.window = 10, .group = 2};
  const TablePtr one = pack(model.dataset(), rule, 1);
  const TablePtr all = pack(model.dataset(), rule, 1'000);
  EXPECT_EQ(one->header(), all->header());
  // The first shard alone: its rows come first, and are the same.
  const Model first(SpanKind::Compact, {shard_of({3, 0, 9, 2, 4, 1, 25})});
  const auto part = layout::make_packed(first.dataset(), pack(first.dataset(), rule));
  const auto whole = layout::make_packed(model.dataset(), all);
  for (std::uint64_t i = 0; i < part->info().size; ++i) {
    Driven a;
    Driven b;
    drive(*part, i, a);
    drive(*whole, i, b);
    ASSERT_EQ(std::memcmp(a.row.records, b.row.records, 20), 0) << i;
  }
}

TEST(PackedTest, IdentityIsCanonicalJsonOfTheRule) {
  const Model model = some_documents();
  const auto source = layout::make_packed(model.dataset(), pack(model.dataset(), {.window = 10}));
  EXPECT_EQ(source->info().identity.view,
            R"({"fit":"best","group":65536,"kind":"packed","long":"split","multiple_of":1,"window":10})");
  EXPECT_EQ(source->info().packed_multiple, 1U);
}

TEST(PackedTest, WhatCannotBePackedSaysWhy) {
  const auto refused = [](const Model& model) {
    return message_of([&] { pack(model.dataset(), {.window = 4}); }, ErrorKind::InvalidArgument);
  };
  EXPECT_NE(refused(Model(SpanKind::None, {shard_of({3})})).find("token stream"), std::string::npos);
  EXPECT_NE(refused(Model(SpanKind::Ids, {{{}, {0}, {"x"}}})).find("convert"), std::string::npos);
  EXPECT_NE(refused(Model(SpanKind::Opaque, {{{}, {}, {"a"}}})).find("without records"), std::string::npos);
  const Model empty(SpanKind::Compact, {shard_of({0, 0})});
  const std::string none = message_of(
      [&] { layout::make_packed(empty.dataset(), pack(empty.dataset(), {.window = 4})); }, ErrorKind::InvalidArgument);
  EXPECT_NE(none.find("none of its 2 documents"), std::string::npos) << none;
}

TEST(PackedTest, AnIndexThatChangedSincePackingIsCorrupt) {
  const Model before(SpanKind::Compact, {shard_of({3, 4})});
  const Model after(SpanKind::Compact, {shard_of({7, 0})});
  const auto source = layout::make_packed(after.dataset(), pack(before.dataset(), {.window = 7}));
  const std::string message = message_of(
      [&] {
        Driven driven;
        drive(*source, 0, driven);
      },
      ErrorKind::Corruption);
  EXPECT_NE(message.find("changed since"), std::string::npos) << message;
}

TargetSpec packed_targets(bool mask) {
  return {.labels = FieldSpec{"labels", "token", {'i', 4}, 0, 0, true}, .mask = mask, .cross_document = false};
}

// Labels and mask of the first row and of one that is padding.
std::pair<std::vector<std::int32_t>, std::vector<std::uint8_t>> targets_of(const Source& source,
                                                                           const TargetSpec& spec) {
  Driven driven;
  drive(source, 0, driven);
  const std::uint64_t window = source.info().shape.length;
  const auto column = make_column(spec, source.info(), false);
  const BatchShape batch{.rows = 2, .valid = 1, .row_records = window, .records = 2 * window, .starts = {}};
  const ArrayShape shape = column->shape(batch);
  std::vector<std::byte> memory(shape.bytes, std::byte{0x5A});
  column->fill_row(driven.row, batch, memory.data());
  column->fill_padding(batch, memory.data());
  std::pair<std::vector<std::int32_t>, std::vector<std::uint8_t>> found;
  found.first.resize(2 * window);
  std::memcpy(found.first.data(), memory.data(), 8 * window);
  if (!spec.mask) return found;
  found.second.resize(2 * window);
  std::memcpy(found.second.data(), memory.data() + shape.further.at(0).at, 2 * window);
  return found;
}

TEST(PackedTest, TargetsAreWhatFollowsInThePiece) {
  const Model model(SpanKind::Compact, {shard_of({3, 1, 2})});
  const auto source = layout::make_packed(model.dataset(), pack(model.dataset(), {.window = 8, .multiple_of = 2}));
  const std::vector<std::int32_t> labels = {1,    2,    -100, -100, 5,    -100, -100, -100,
                                            -100, -100, -100, -100, -100, -100, -100, -100};
  EXPECT_EQ(targets_of(*source, packed_targets(false)).first, labels);
  const auto both = targets_of(*source, packed_targets(true));
  EXPECT_EQ(both.first, labels);
  EXPECT_EQ(both.second, (std::vector<std::uint8_t>{1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(PackedTest, TargetsThatWouldCrossDocumentsAreRefused) {
  const Model model(SpanKind::Compact, {shard_of({3, 1})});
  const auto source = layout::make_packed(model.dataset(), pack(model.dataset(), {.window = 8}));
  TargetSpec spec = packed_targets(true);
  spec.cross_document = true;
  const auto make = [&] { make_column(spec, source->info(), false); };
  EXPECT_NE(message_of(make, ErrorKind::InvalidArgument).find("pieces"), std::string::npos);
  spec = packed_targets(true);
  spec.bounds = {penstock::DocumentBounds::By::EndValue, "token", 0};
  message_of(make, ErrorKind::InvalidArgument);
}

}  // namespace
}  // namespace penstock::testing
