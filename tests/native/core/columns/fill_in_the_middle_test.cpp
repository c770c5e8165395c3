// Fill-in-the-middle against a model over vectors of records, under the engine.
#include "core/columns/fill_in_the_middle.h"

#include "core/columns/row_draws.h"
#include "tests/native/core/columns/document_stream.h"
#include "tests/native/message_of.h"

#include <algorithm>
#include <utility>

namespace penstock::testing {
namespace {

using Stays = std::optional<std::int64_t>;

constexpr std::uint64_t kPurposeOfMiddle = 0x66696d;  // "fim"

FillInTheMiddleSpec middle_spec(DocumentBounds::By by, Stays first, Stays last) {
  const std::int64_t value = by == DocumentBounds::By::BeginValue ? DocumentStream::kBegin : DocumentStream::kEnd;
  return {"token", 201, 202, 203, 0.75, 0.5, {by, "token", value}, first, last, 17};
}

/// A record: its token, its field `loss`, and the stream's number of the one that it was.
struct MiddleRecord {
  std::uint32_t token = 0;
  std::uint8_t loss = 0;
  bool operator==(const MiddleRecord&) const = default;
};

void rearrange_piece(const FillInTheMiddleSpec& spec, std::vector<MiddleRecord>& row, std::uint64_t begin,
                     std::uint64_t end, RowDraws& draws) {
  const bool is_chosen = draws.happens(spec.rate);
  const bool is_spm = draws.happens(spec.spm_rate);
  const std::uint64_t one = draws.next();
  const std::uint64_t other = draws.next();
  if (begin < end && spec.first_stays && row[begin].token == *spec.first_stays) ++begin;
  if (begin < end && spec.last_stays && row[end - 1].token == *spec.last_stays) --end;
  if (!is_chosen || end - begin < 4) return;
  const std::uint64_t count = end - begin - 3;
  const std::vector<MiddleRecord> whole(row.begin() + static_cast<std::ptrdiff_t>(begin),
                                        row.begin() + static_cast<std::ptrdiff_t>(begin + count));
  const auto scaled = [&](std::uint64_t bits) {
    __extension__ using u128 = unsigned __int128;
    return static_cast<std::uint64_t>((u128{bits} * (count + 1)) >> 64);
  };
  const auto [first, last] = std::minmax({scaled(one), scaled(other)});
  std::vector<MiddleRecord> made;
  const auto mark = [&](std::int64_t token, std::uint64_t before) {
    made.push_back(whole[std::min(before, count - 1)]);
    made.back().token = static_cast<std::uint32_t>(token);
  };
  const auto put = [&](std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t i = from; i < to; ++i) made.push_back(whole[i]);
  };
  mark(spec.prefix, is_spm ? last : 0);
  if (!is_spm) put(0, first);
  mark(spec.suffix, last);
  put(last, count);
  mark(spec.middle, is_spm ? 0 : first);
  put(is_spm ? 0 : first, last);
  std::copy(made.begin(), made.end(), row.begin() + static_cast<std::ptrdiff_t>(begin));
}

/// The row at [first, first + length) of the stream, as it is rearranged.
std::vector<MiddleRecord> model_of(const DocumentStream& stream, const FillInTheMiddleSpec& spec, bool ragged,
                                   std::uint64_t first, std::uint64_t length, std::uint64_t index) {
  std::vector<MiddleRecord> row;
  for (std::uint64_t i = first; i < first + length; ++i) row.push_back({stream.tokens[i], stream.counts[i]});
  std::vector<std::uint64_t> cuts = {0};
  for (std::uint64_t i = 1; i < length && !ragged; ++i) {
    const bool cut = spec.bounds.by == DocumentBounds::By::Spans      ? stream.begins_at(first + i)
                     : spec.bounds.by == DocumentBounds::By::EndValue ? stream.tokens[first + i - 1] == stream.kEnd
                                                                      : stream.tokens[first + i] == stream.kBegin;
    if (cut) cuts.push_back(i);
  }
  cuts.push_back(length);
  RowDraws draws(spec.seed ^ mix64(kPurposeOfMiddle), 0, index);
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) rearrange_piece(spec, row, cuts[i], cuts[i + 1], draws);
  return row;
}

std::vector<MiddleRecord> records_of(Batch& batch, std::uint64_t row, std::uint64_t stride) {
  std::vector<MiddleRecord> found(batch.row_length(row));
  const std::byte* at = batch.row_records(row);
  for (MiddleRecord& record : found) {
    std::memcpy(&record.token, at, sizeof record.token);
    std::memcpy(&record.loss, at + sizeof record.token, sizeof record.loss);
    at += stride;
  }
  return found;
}

TEST(FillInTheMiddle, RowsAreWhatTheModelSaysHoweverDocumentsAreBoundAndColumnsAreMadeOfThem) {
  const DocumentStream stream(3000, 1, 40);
  std::uint64_t moved = 0;
  for (const auto by : {DocumentBounds::By::Spans, DocumentBounds::By::EndValue, DocumentBounds::By::BeginValue}) {
    for (const auto& [window, lookahead] :
         std::vector<std::pair<std::uint64_t, std::uint64_t>>{{0, 0}, {1, 0}, {30, 1}, {64, 0}, {50, 3}}) {
      for (const Stays last : {Stays(), Stays(DocumentStream::kEnd)}) {
        FieldRows rows = stream.rows();
        rows.documents = stream.begins;
        rows.length = window == 0 ? 0 : window + lookahead;
        rows.lookahead = lookahead;
        for (std::uint64_t i = 0; i < 60; ++i) rows.lengths.push_back(i * 7 % 45);
        const auto spec = middle_spec(by, last ? Stays() : Stays(DocumentStream::kBegin), last);
        const auto source = std::make_shared<FieldSource>(std::move(rows));
        const std::vector<ColumnSpec> specs = {FieldSpec{"token", "token", ScalarType{'i', 8}}};
        auto formats = std::make_shared<BatchFormats>();
        formats->emplace_back(source, specs, Parts::None, nullptr, spec);
        std::vector<std::uint64_t> indices(source->info().size);
        std::iota(indices.begin(), indices.end(), 0);
        const auto batch = read_rows(formats, indices);
        const auto column = values_of<std::int64_t>(*batch, 0);
        std::size_t at = 0;
        for (const std::uint64_t i : indices) {
          const std::uint64_t first = source->first_of(i);
          const auto expected = model_of(stream, spec, window == 0, first, source->count_of(i), i);
          EXPECT_EQ(records_of(*batch, i, 5), expected);
          for (std::uint64_t k = 0; k < expected.size(); ++k, ++at) {
            EXPECT_EQ(column[at], expected[k].token);
            moved += expected[k].token != stream.tokens[first + k] ? 1 : 0;
          }
        }
      }
    }
  }
  EXPECT_GT(moved, 10'000U);
}

TEST(FillInTheMiddle, DrawsAreThoseOfSplitMix64) {
  RowDraws draws(7, 1, 2);
  EXPECT_EQ(draws.next(), RowDraws(7, 1, 2).next());
  EXPECT_NE(RowDraws(7, 1, 2).next(), RowDraws(7, 2, 1).next());
  RowDraws never(7, 1, 2);
  RowDraws always(7, 1, 2);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(never.happens(0));
    EXPECT_TRUE(always.happens(1));
    EXPECT_LT(draws.below(3), 3U);
  }
}

TEST(FillInTheMiddle, WhatCannotBeIsRefused) {
  const DocumentStream stream(100);
  FieldRows rows = stream.rows();
  rows.length = 10;
  const FieldSource source(rows);
  const auto refused = [&](auto change, const SourceInfo& info) {
    FillInTheMiddleSpec spec = middle_spec(DocumentBounds::By::Spans, {}, {});
    change(spec);
    return message_of([&] { const FillInTheMiddle made(spec, info); }, ErrorKind::InvalidArgument);
  };
  const SourceInfo& info = source.info();
  EXPECT_EQ(refused([](auto& spec) { spec.rate = 1.5; }, info), "FillInTheMiddle(rate=1.5): must be from 0 to 1");
  EXPECT_EQ(refused([](auto& spec) { spec.spm_rate = -1; }, info), "FillInTheMiddle(spm_rate=-1): must be from 0 to 1");
  EXPECT_EQ(refused([](auto& spec) { spec.middle = std::int64_t{1} << 32; }, info),
            "FillInTheMiddle(middle=4294967296): no value of field token, uint32");
  EXPECT_EQ(refused([](auto& spec) { spec.middle = spec.suffix; }, info),
            "FillInTheMiddle: prefix=201, middle=203, suffix=203: must be three tokens");
  EXPECT_EQ(refused([](auto& spec) { spec.field = "none"; }, info), "the records have no field none");
  rows.apart = true;
  const FieldSource apart(rows);
  EXPECT_NE(refused([](auto&) {}, apart.info()).find("its fields lie apart"), std::string::npos);
}

}  // namespace
}  // namespace penstock::testing
