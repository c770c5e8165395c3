// cu_seqlens and what goes with it, against a plain model, under the engine.
#include "tests/native/core/engine/field_source.h"
#include "tests/native/core/engine/loader_fixture.h"

#include "core/engine/read_rows.h"

#include <random>
#include <string>

namespace penstock::testing {
namespace {

constexpr std::uint32_t kEndToken = 3;    // the value after which a document ends …
constexpr std::uint32_t kBeginToken = 4;  // … and the one with which one begins
using Ints = std::vector<std::int32_t>;

struct Sequences {
  Ints bounds{0};
  Ints positions;
  Ints documents;
  std::int32_t longest = 0;
  bool operator==(const Sequences&) const = default;
};

using By = DocumentBounds::By;

DocumentBounds bounds_of(By by) {
  return {by, "token", by == By::BeginValue ? kBeginToken : kEndToken};
}

std::vector<ColumnSpec> specs_of(std::uint64_t lookahead, By by, std::optional<std::uint64_t> most = {}) {
  using Kind = SequenceSpec::Kind;
  std::vector<ColumnSpec> specs;
  for (const Kind kind : {Kind::Bounds, Kind::Longest, Kind::Positions, Kind::Documents}) {
    const bool is_bounded = kind == Kind::Bounds || kind == Kind::Longest;
    specs.emplace_back(SequenceSpec{kind, lookahead, bounds_of(by), is_bounded ? most : std::nullopt});
  }
  return specs;
}

Ints ints_of(const Batch& batch, std::size_t column) {
  const PlacedArray& array = batch.arrays.at(column);
  std::uint64_t count = 1;
  for (const std::uint64_t dim : array.shape.dims) count *= dim;
  Ints values(count);
  if (count > 0) std::memcpy(values.data(), batch.slab.data() + array.at, 4 * count);
  return values;
}

Sequences found_in(const Batch& batch) {
  return {ints_of(batch, 0), ints_of(batch, 2), ints_of(batch, 3), ints_of(batch, 1).at(0)};
}

/// Random tokens and documents; the same documents by spans and by the value of either end.
struct Stream {
  std::vector<std::uint32_t> tokens;
  std::vector<std::uint64_t> documents;

  explicit Stream(std::uint64_t count, unsigned rarity = 5) {
    std::mt19937 random(7);
    while (tokens.size() < count) {
      // Of two tokens at least, as the values of both ends want it.
      tokens.push_back(kBeginToken);
      while (random() % rarity != 0) tokens.push_back(10 + static_cast<std::uint32_t>(random() % 50));
      tokens.push_back(kEndToken);
      documents.push_back(tokens.size());
    }
    tokens.resize(count);
  }

  template <typename T>
  FieldRows rows(const std::string& fields, std::uint64_t hidden = 0) const {
    FieldRows made{.fields = fields, .documents = documents, .stored_extra = hidden};
    for (const std::uint32_t token : tokens) {
      put_values(made.bytes, static_cast<T>(token));
      made.bytes.resize(made.bytes.size() + hidden, std::byte{3});
    }
    return made;
  }
};

Sequences model(const Batch& batch, const Stream& stream, std::uint64_t lookahead) {
  const auto& source = static_cast<const FieldSource&>(*batch.format->source);
  Sequences made;
  std::int32_t at = 0;
  std::int32_t document = -1;
  const auto end = [&](std::int32_t length) {
    made.bounds.push_back(at);
    made.longest = std::max(made.longest, length);
  };
  for (std::uint64_t i = 0; i < batch.plan.rows; ++i) {
    const bool padding = i >= batch.plan.valid;
    if (padding && batch.format->shape.ragged) continue;
    const std::uint64_t first = padding ? 0 : source.first_of(batch.picks[i].index);
    const std::uint64_t count =
        padding ? batch.format->shape.length - lookahead : source.count_of(batch.picks[i].index) - lookahead;
    std::int32_t position = 0;
    document = batch.format->shape.ragged ? document + 1 : 0;
    for (std::uint64_t k = 0; k < count; ++k) {
      if (!padding && k > 0 && stream.tokens[first + k - 1] == kEndToken) {
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

LoaderOptions options_for(const Case& setup, const FieldRows& rows, const std::vector<ColumnSpec>& specs,
                          Parts wanted = Parts::All) {
  BatchFormats formats;
  formats.emplace_back(std::make_shared<FieldSource>(rows), specs, wanted);
  const std::uint64_t size = formats[0].source->info().size;
  return options_of(setup, std::make_shared<IdentityOrder>(size), std::move(formats));
}

TEST(SequenceColumns, AreWhatTheModelSays) {
  const Stream stream(400);
  for (const By by : {By::Spans, By::EndValue, By::BeginValue}) {
    for (const std::uint64_t lookahead : {0, 1, 3}) {
      for (const bool ragged : {false, true}) {
        if (ragged && lookahead > 0) continue;
        for (const bool lends : {false, true}) {
          Case setup;
          setup.lends = lends;
          setup.batch = 7;  // the run's last batch is padded
          FieldRows rows = stream.rows<std::uint32_t>(R"([["token","<u4"]])");
          rows.lookahead = lookahead;
          rows.length = ragged ? 0 : 13 + lookahead;
          for (std::uint64_t i = 0; i < 30; ++i) rows.lengths.push_back(i * 5 % 13);
          Loader loader(options_for(setup, rows, specs_of(lookahead, by)));
          std::uint64_t padded = 0;
          while (auto batch = next(loader)) {
            EXPECT_EQ(found_in(*batch), model(*batch, stream, lookahead)) << batch->plan.position;
            padded += batch->plan.rows - batch->plan.valid;
          }
          EXPECT_GT(padded, 0U);
        }
      }
    }
  }
}

TEST(SequenceColumns, EveryWidthAndStrideOfTheTokenIsSearched) {
  const Stream stream(3000, 100);
  const auto expect = [&](FieldRows rows) {
    rows.length = 300;
    for (const By by : {By::EndValue, By::BeginValue}) {
      auto formats = std::make_shared<BatchFormats>();
      formats->emplace_back(std::make_shared<FieldSource>(rows), specs_of(0, by));
      const auto batch = read_rows(formats, std::vector<std::uint64_t>{3, 1, 2, 9});
      EXPECT_EQ(found_in(*batch), model(*batch, stream, 0)) << rows.fields;
    }
  };
  for (const std::uint64_t hidden : {0, 3}) {
    expect(stream.rows<std::uint8_t>(R"([["token","|u1"]])", hidden));
    expect(stream.rows<std::int8_t>(R"([["token","|i1"]])", hidden));
    expect(stream.rows<std::uint16_t>(R"([["token","<u2"]])", hidden));
    expect(stream.rows<std::uint32_t>(R"([["token","<u4"]])", hidden));
    expect(stream.rows<std::int64_t>(R"([["token","<i8"]])", hidden));
  }
  FieldRows apart{.fields = R"([["weight","<f4"],["token","<u2"]])", .apart = true};
  for (const std::uint32_t token : stream.tokens) put_values(apart.bytes, 3.0F, static_cast<std::uint16_t>(token));
  expect(apart);
}

TEST(SequenceColumns, MaxDocumentsPadsWithTheLastValueAndBoundsTheCount) {
  const Stream stream(120);
  FieldRows rows = stream.rows<std::uint32_t>(R"([["token","<u4"]])");
  rows.length = 6;
  Case setup;
  std::uint64_t most = 0;
  std::vector<Sequences> all;
  {
    Loader loader(options_for(setup, rows, specs_of(0, By::Spans)));
    while (auto batch = next(loader)) {
      all.push_back(found_in(*batch));
      most = std::max<std::uint64_t>(most, all.back().bounds.size() - 1);
    }
  }
  for (const std::uint64_t allowed : {most, most + 1, std::uint64_t{1000}}) {
    Loader loader(options_for(setup, rows, specs_of(0, By::Spans, allowed)));
    for (Sequences& expected : all) {
      Sequences padded = expected;
      padded.bounds.resize(allowed + 1, expected.bounds.back());
      padded.longest = 6;  // the window, so that it is one number in all batches
      EXPECT_EQ(found_in(*next(loader)), padded);
    }
  }
  const std::string words = ", max_documents is " + std::to_string(most - 1);
  for (const unsigned threads : {1, 4}) {
    setup.threads = threads;
    Loader loader(options_for(setup, rows, specs_of(0, By::Spans, most - 1)));
    std::uint64_t failed = 0;
    for (std::size_t step = 0; step < all.size(); ++step) {
      if (all[step].bounds.size() - 1 < most) {
        EXPECT_EQ(found_in(*next(loader)).documents, all[step].documents);
        continue;
      }
      ++failed;
      const std::uint64_t position = loader.position();
      for (int attempt = 0; attempt < 2; ++attempt) {
        try {
          next(loader);
          FAIL() << "a batch of more documents than max_documents";
        } catch (const Error& error) {
          EXPECT_EQ(error.kind(), ErrorKind::InvalidArgument);
          EXPECT_EQ(error.what(), "cu_seqlens: this batch has " + std::to_string(most) + " documents" + words);
        }
        EXPECT_EQ(loader.position(), position);
      }
      loader.seek(position + setup.batch);
    }
    EXPECT_GT(failed, 0U);
  }
}

TEST(SequenceColumns, SpansAreReadForThemWhatElseIsWanted) {
  const Stream stream(120);
  FieldRows rows = stream.rows<std::uint32_t>(R"([["token","<u4"]])");
  rows.length = 6;
  Loader loader(options_for({}, rows, specs_of(0, By::Spans), Parts::Records));
  const auto batch = next(loader);
  EXPECT_EQ(found_in(*batch), model(*batch, stream, 0));
  Loader without(options_for({}, rows, specs_of(0, By::EndValue), Parts::Records));
  const auto plain = next(without);
  EXPECT_EQ(found_in(*plain), found_in(*batch));
  EXPECT_TRUE(plain->rows[0].spans.empty());
}

TEST(SequenceColumns, ThreadsChangeNothingAndRestoreAtEveryStepRepeatsTheRest) {
  const Stream stream(2000);
  FieldRows rows = stream.rows<std::uint16_t>(R"([["token","<u2"]])");
  rows.length = 10;
  const auto all_of = [&](unsigned threads, unsigned prefetch, std::uint64_t from) {
    Case setup;
    setup.batch = 40;
    setup.threads = threads;
    setup.prefetch = prefetch;
    Loader loader(options_for(setup, rows, specs_of(0, By::EndValue)));
    loader.seek(from);
    std::vector<Sequences> all;
    while (auto batch = next(loader)) all.push_back(found_in(*batch));
    return all;
  };
  const auto expected = all_of(1, 1, 0);
  for (const auto& [threads, prefetch] : {std::pair{2U, 4U}, {5U, 1U}, {5U, 7U}}) {
    EXPECT_EQ(all_of(threads, prefetch, 0), expected);
  }
  for (std::size_t step = 0; step < expected.size(); ++step) {
    EXPECT_EQ(all_of(2, 3, step * 40),
              std::vector<Sequences>(expected.begin() + static_cast<std::ptrdiff_t>(step), expected.end()));
  }
}

TEST(SequenceColumns, ABatchOfNothingButEmptyDocumentsHasEmptySequences) {
  FieldRows rows{.fields = R"([["token","<u4"]])", .lengths = {0, 0, 0}};
  Loader loader(options_for({}, rows, specs_of(0, By::Spans)));
  const auto batch = next(loader);
  const Sequences found = found_in(*batch);
  EXPECT_EQ(found.bounds, Ints(1 + batch->plan.valid, 0));
  EXPECT_EQ(found.longest, 0);
  EXPECT_TRUE(found.positions.empty() && found.documents.empty());
}

TEST(SequenceColumns, WhatCannotBeIsRefusedInWords) {
  const auto words = [](const FieldRows& rows, const SequenceSpec& spec) -> std::string {
    try {
      const BatchFormat format(std::make_shared<FieldSource>(rows), {spec});
      const BatchShape shape{std::uint64_t{1} << 31, 1, false, format.shape.length, 0, {}};
      static_cast<void>(format.columns[0]->shape(shape));
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::InvalidArgument);
      return error.what();
    }
    return "";
  };
  using Kind = SequenceSpec::Kind;
  FieldRows rows{.fields = R"([["token","<u2"],["weight","<f4"]])", .length = 4};
  rows.bytes.resize(6 * 8);
  EXPECT_EQ(words(rows, {Kind::Bounds, 0, {By::EndValue, "token", 70'000}}),
            "end_of_document=70000: no value of field token, uint16");
  EXPECT_EQ(words(rows, {Kind::Bounds, 0, {By::EndValue, "weight", 1}}),
            "end_of_document: field weight holds no single integer a record");
  EXPECT_EQ(words(rows, {Kind::Bounds, 0, {By::BeginValue, "tokens", 1}}), "the records have no field tokens");
  EXPECT_EQ(words(rows, {Kind::Bounds, 0, {By::BeginValue, "token", -1}}),
            "begin_of_document=-1: no value of field token, uint16");
  EXPECT_EQ(words(rows, {Kind::Positions, 4}), "sequences drop 4 records of a row of 4");
  for (const Kind kind : {Kind::Bounds, Kind::Longest, Kind::Positions, Kind::Documents}) {
    EXPECT_EQ(words(rows, {kind, 1}),
              "a batch of 6,442,450,944 records: cu_seqlens, position_ids and document_ids are int32 and count at most "
              "2,147,483,647");
  }
}

}  // namespace
}  // namespace penstock::testing
