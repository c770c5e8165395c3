// cu_seqlens and what goes with it, against a plain model, under the engine.
#include "tests/native/core/columns/document_stream.h"
#include "tests/native/message_of.h"

namespace penstock::testing {
namespace {

using By = DocumentBounds::By;
using Kind = SequenceSpec::Kind;
using Ints = std::vector<std::int32_t>;

constexpr Kind kKinds[]{Kind::Bounds, Kind::Longest, Kind::Positions, Kind::Documents};

struct Sequences {
  Ints bounds{0};
  Ints positions = {};
  Ints documents = {};
  std::int32_t longest = 0;
  bool operator==(const Sequences&) const = default;
};

std::vector<ColumnSpec> specs_of(std::uint64_t lookahead, By by, std::optional<std::uint64_t> most = {}) {
  const DocumentBounds bounds{by, "token", by == By::BeginValue ? DocumentStream::kBegin : DocumentStream::kEnd};
  std::vector<ColumnSpec> specs;
  for (const Kind kind : kKinds) {
    const bool is_bounded = kind == Kind::Bounds || kind == Kind::Longest;
    specs.emplace_back(SequenceSpec{kind, lookahead, bounds, is_bounded ? most : std::nullopt});
  }
  return specs;
}

Sequences found_in(const Batch& batch) {
  const auto ints = [&](std::size_t column) { return values_of<std::int32_t>(batch, column); };
  return {ints(0), ints(2), ints(3), ints(1).at(0)};
}

Sequences model(const Batch& batch, const DocumentStream& stream, std::uint64_t lookahead) {
  const auto& source = static_cast<const FieldSource&>(*batch.format->source);
  const bool ragged = batch.format->shape.ragged;
  Sequences made;
  std::int32_t at = 0;
  std::int32_t document = -1;
  const auto end = [&](std::int32_t length) {
    made.bounds.push_back(at);
    made.longest = std::max(made.longest, length);
  };
  for (std::uint64_t i = 0; i < batch.plan.rows; ++i) {
    const bool padding = i >= batch.plan.valid;
    if (padding && ragged) continue;
    const std::uint64_t first = padding ? 0 : source.first_of(batch.picks[i].index);
    const std::uint64_t count =
        (padding ? batch.format->shape.length : source.count_of(batch.picks[i].index)) - lookahead;
    std::int32_t position = 0;
    document = ragged ? document + 1 : 0;
    for (std::uint64_t k = 0; k < count; ++k) {
      if (!padding && k > 0 && stream.begins_at(first + k)) {
        end(position);
        position = 0;
        ++document;
      }
      made.positions.push_back(position++);
      made.documents.push_back(padding ? -1 : document);
      ++at;
    }
    end(position);
  }
  return made;
}

TEST(SequenceColumns, AreWhatTheModelSays) {
  const DocumentStream stream(400);
  for (const By by : {By::Spans, By::EndValue, By::BeginValue}) {
    for (const std::uint64_t lookahead : {0, 1, 3}) {
      for (const bool ragged : {false, true}) {
        if (ragged && lookahead > 0) continue;
        for (const bool lends : {false, true}) {
          Case setup;
          setup.lends = lends;
          setup.batch = 7;  // the run's last batch is padded
          FieldRows rows = stream.rows();
          rows.lookahead = lookahead;
          rows.length = ragged ? 0 : 13 + lookahead;
          for (std::uint64_t i = 0; i < 30; ++i) rows.lengths.push_back(i * 5 % 13);
          // Spans are read for them whatever else is wanted, and not where a token tells.
          Loader loader(options_of(setup, rows, specs_of(lookahead, by), lends ? Parts::Records : Parts::All));
          std::uint64_t padded = 0;
          while (auto batch = next(loader)) {
            EXPECT_EQ(found_in(*batch), model(*batch, stream, lookahead)) << batch->plan.position;
            if (lends && by != By::Spans) {
              EXPECT_TRUE(batch->rows[0].spans.empty());
            }
            padded += batch->plan.rows - batch->plan.valid;
          }
          EXPECT_GT(padded, 0U);
        }
      }
    }
  }
}

TEST(SequenceColumns, EveryWidthAndStrideOfTheTokenIsSearched) {
  const DocumentStream stream(3000, 7, 200);
  const auto expect = [&]<typename T>(T, const std::string& fields, std::uint64_t hidden, bool apart = false) {
    FieldRows rows{.fields = fields, .length = 300, .documents = stream.begins, .apart = apart, .stored_extra = hidden};
    for (const std::uint32_t token : stream.tokens) {
      if (apart) put_values(rows.bytes, 3.0F);
      put_values(rows.bytes, static_cast<T>(token));
      rows.bytes.resize(rows.bytes.size() + hidden, std::byte{3});
    }
    for (const By by : {By::EndValue, By::BeginValue}) {
      const auto batch = batch_of(rows, specs_of(0, by), {3, 1, 2, 9});
      EXPECT_EQ(found_in(*batch), model(*batch, stream, 0)) << rows.fields;
    }
  };
  for (const std::uint64_t hidden : {0, 3}) {
    expect(std::uint8_t{}, R"([["token","|u1"]])", hidden);
    expect(std::int8_t{}, R"([["token","|i1"]])", hidden);
    expect(std::uint16_t{}, R"([["token","<u2"]])", hidden);
    expect(std::uint32_t{}, R"([["token","<u4"]])", hidden);
    expect(std::int64_t{}, R"([["token","<i8"]])", hidden);
  }
  expect(std::uint16_t{}, R"([["weight","<f4"],["token","<u2"]])", 0, true);
}

TEST(SequenceColumns, MaxDocumentsPadsWithTheLastValueAndBoundsTheCount) {
  FieldRows rows = DocumentStream(240).rows();
  rows.length = 12;
  std::uint64_t most = 0;
  std::vector<Sequences> all;
  Loader loader(options_of({}, rows, specs_of(0, By::Spans)));
  while (auto batch = next(loader)) {
    all.push_back(found_in(*batch));
    most = std::max<std::uint64_t>(most, all.back().bounds.size() - 1);
  }
  for (const std::uint64_t allowed : {most, most + 1, std::uint64_t{1000}}) {
    Loader bounded(options_of({}, rows, specs_of(0, By::Spans, allowed)));
    for (Sequences padded : all) {
      padded.bounds.resize(allowed + 1, padded.bounds.back());
      padded.longest = 12;  // the window, so that it is one number in all batches; no document is as long
      EXPECT_EQ(found_in(*next(bounded)), padded);
    }
  }
  Loader exceeded(options_of({}, rows, specs_of(0, By::Spans, most - 1)));
  for (const Sequences& each : all) {
    if (each.bounds.size() - 1 < most) {
      EXPECT_EQ(found_in(*next(exceeded)).documents, each.documents);
      continue;
    }
    EXPECT_EQ(message_of([&] { next(exceeded); }, ErrorKind::InvalidArgument),
              "cu_seqlens: this batch has " + std::to_string(most) + " documents, max_documents is " +
                  std::to_string(most - 1));
    exceeded.seek(exceeded.position() + Case().batch);
  }
}

TEST(SequenceColumns, ABatchOfNothingButEmptyDocumentsHasEmptySequences) {
  Loader loader(options_of({}, {.fields = R"([["token","<u4"]])", .lengths = {0, 0, 0}}, specs_of(0, By::Spans)));
  const auto batch = next(loader);
  EXPECT_EQ(found_in(*batch), Sequences{.bounds = Ints(1 + batch->plan.valid, 0)});
}

TEST(SequenceColumns, WhatCannotBeIsRefusedInWords) {
  FieldRows rows{.fields = R"([["token","<u2"],["weight","<f4"]])", .length = 4};
  rows.bytes.resize(6 * 8);
  const auto words = [&](const SequenceSpec& spec) {
    return message_of(
        [&] {
          const BatchFormat format(std::make_shared<FieldSource>(rows), {spec});
          const BatchShape shape{std::uint64_t{1} << 31, 1, false, format.shape.length, 0, {}};
          static_cast<void>(format.columns[0]->shape(shape));
        },
        ErrorKind::InvalidArgument);
  };
  EXPECT_EQ(words({Kind::Bounds, 0, {By::EndValue, "token", 70'000}}),
            "end_of_document=70000: no value of field token, uint16");
  EXPECT_EQ(words({Kind::Bounds, 0, {By::EndValue, "weight", 1}}),
            "end_of_document: field weight holds no single integer a record");
  EXPECT_EQ(words({Kind::Bounds, 0, {By::BeginValue, "tokens", 1}}), "the records have no field tokens");
  EXPECT_EQ(words({Kind::Bounds, 0, {By::BeginValue, "token", -1}}),
            "begin_of_document=-1: no value of field token, uint16");
  EXPECT_EQ(words({Kind::Positions, 4}), "sequences drop 4 records of a row of 4");
  for (const Kind kind : kKinds) {
    EXPECT_EQ(words({kind, 1}),
              "a batch of 6,442,450,944 records: cu_seqlens, position_ids and document_ids are int32 and count at most "
              "2,147,483,647");
  }
}

}  // namespace
}  // namespace penstock::testing
