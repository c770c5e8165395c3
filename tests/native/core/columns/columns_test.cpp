// Columns of sources that differ: in the order, types and number of their fields, and in how fields lie.
#include "core/batch/late_array.h"
#include "tests/native/core/columns/document_stream.h"
#include "tests/native/message_of.h"

namespace penstock::testing {
namespace {

constexpr std::uint64_t kRows = 23;
constexpr std::uint64_t kLength = 5;

std::uint32_t token_of(std::uint32_t source, std::uint64_t record) {
  return source * 10'000 + static_cast<std::uint32_t>(record);
}
float weight_of(std::uint32_t source, std::uint64_t record) {
  return static_cast<float>(source) + static_cast<float>(record) / 256.0F;
}

/// Rows of these fields, `put` giving the bytes of each record.
template <typename Put>
FieldRows rows_of(bool ragged, const char* fields, const Put& put) {
  FieldRows rows{.fields = fields, .length = ragged ? 0 : kLength};
  for (std::uint64_t i = 0; i < kRows * kLength; ++i) put(rows.bytes, i);
  for (std::uint64_t i = 0; i < kRows; ++i) rows.lengths.push_back(i % kLength);
  return rows;
}

/// (token u2, weight f4) of source 0.
FieldRows first_rows(bool ragged, const char* fields = R"([["token","<u2"],["weight","<f4"]])") {
  return rows_of(ragged, fields, [](auto& bytes, std::uint64_t i) {
    put_values(bytes, static_cast<std::uint16_t>(token_of(0, i)), weight_of(0, i));
  });
}
/// (weight f4, token u2) of source 1: records as large, fields the other way round.
FieldRows turned_rows(bool ragged) {
  return rows_of(ragged, R"([["weight","<f4"],["token","<u2"]])", [](auto& bytes, std::uint64_t i) {
    put_values(bytes, weight_of(1, i), static_cast<std::uint16_t>(token_of(1, i)));
  });
}
/// (other u8, token u4, weight f4), and a lead: records of 16 bytes.
FieldRows large_rows(bool ragged) {
  FieldRows rows =
      rows_of(ragged, R"([["other","<u8"],["token","<u4"],["weight","<f4"]])",
              [](auto& bytes, std::uint64_t i) { put_values(bytes, i << 40, token_of(1, i), weight_of(1, i)); });
  rows.lead = ragged ? 0 : 3;
  return rows;
}
/// (token u4) alone: to int32, it needs no copy where it is not mixed.
FieldRows bare_rows(bool ragged, std::uint32_t source) {
  return rows_of(ragged, R"([["token","<u4"]])",
                 [&](auto& bytes, std::uint64_t i) { put_values(bytes, token_of(source, i)); });
}
FieldRows apart(FieldRows rows) {
  rows.apart = true;
  rows.lead = 0;
  return rows;
}

LoaderOptions mixed(const Case& setup, FieldRows first, FieldRows second, const std::vector<ColumnSpec>& specs) {
  const auto order =
      std::make_shared<StagedOrder>(kRows, std::vector<Stage>{{0, 1}, {1, 0}, {2, 1}, {6, 0}, {13, 1}, {25, 0}}, false);
  BatchFormats formats;
  formats.emplace_back(std::make_shared<FieldSource>(std::move(first)), specs);
  formats.emplace_back(std::make_shared<FieldSource>(std::move(second)), specs);
  return options_of(setup, order, std::move(formats));
}

/// What the rows of the batch have: the model, straight from its picks.
template <typename T, typename Value>
std::vector<T> expected(const Batch& batch, const Value& value) {
  std::vector<T> values;
  for (std::uint64_t i = 0; i < batch.plan.rows; ++i) {
    if (i >= batch.plan.valid) {
      values.insert(values.end(), batch.format->shape.ragged ? 0 : kLength, T{0});
      continue;
    }
    const Pick pick = batch.picks[i];
    const auto& source = static_cast<const FieldSource&>(*(*batch.formats)[pick.source].source);
    const std::uint64_t first = source.first_of(pick.index);
    for (std::uint64_t k = first; k < first + source.count_of(pick.index); ++k) {
      values.push_back(static_cast<T>(value(pick.source, k)));
    }
  }
  return values;
}

TEST(MixedColumns, SourcesWhoseRecordsDifferGiveTheirValuesByName) {
  const FieldSpec token{"token", "token", {'i', 8}};
  const std::vector<ColumnSpec> specs{token, FieldSpec{"weight", "weight", {'f', 4}}};
  for (const bool ragged : {false, true}) {
    const std::vector<FieldRows> seconds{first_rows(ragged), turned_rows(ragged), large_rows(ragged),
                                         apart(turned_rows(ragged)), apart(large_rows(ragged))};
    for (std::size_t second = 0; second < 2 * seconds.size(); ++second) {
      const FieldRows& other_rows = seconds[second / 2];
      const bool is_alike = second < 2;
      Case setup;
      setup.lends = second % 2 == 1;
      Loader loader(mixed(setup, first_rows(ragged), other_rows, specs));
      std::uint64_t both = 0;
      std::uint64_t batches = 0;
      for (; auto batch = next(loader); ++batches) {
        bool other = false;
        for (const Pick& pick : batch->picks) other |= pick.source != batch->picks[0].source;
        both += other ? 1 : 0;
        EXPECT_EQ(batch->has_records(), is_alike || (!other && !(other_rows.apart && batch->picks[0].source == 1)));
        if (is_alike) continue;
        const auto tokens = expected<std::int64_t>(*batch, token_of);
        EXPECT_EQ(values_of<std::int64_t>(*batch, 0), tokens) << "at " << batch->plan.position;
        EXPECT_EQ(values_of<float>(*batch, 1), expected<float>(*batch, weight_of)) << "at " << batch->plan.position;
        const LateArray late(*batch, token);
        std::vector<std::int64_t> written(late.shape().bytes / 8);
        late.write(reinterpret_cast<std::byte*>(written.data()));
        EXPECT_EQ(written, tokens);
      }
      EXPECT_EQ(batches, 12U);
      EXPECT_GE(both, 3U);
    }
  }
}

TEST(MixedColumns, AColumnThatIsTheRecordsOfOneSourceIsMadeWhereTheyMeet) {
  const std::vector<ColumnSpec> specs{FieldSpec{"token", "token", {'i', 4}}};
  for (const bool ragged : {false, true}) {
    Loader in_place(mixed({}, bare_rows(ragged, 0), bare_rows(ragged, 1), specs));
    const auto same = next(in_place);
    EXPECT_TRUE(same->arrays[0].shape.in_place && same->has_records());
    Loader loader(mixed({}, first_rows(ragged), bare_rows(ragged, 1), specs));
    while (auto batch = next(loader)) {
      EXPECT_FALSE(batch->arrays[0].shape.in_place);
      EXPECT_EQ(values_of<std::int32_t>(*batch, 0), expected<std::int32_t>(*batch, token_of));
    }
  }
}

TEST(MixedColumns, FieldsOfDifferentKindAreRefusedByNameAndTypes) {
  const auto refusal = [](const FieldRows& first, const FieldRows& second) {
    const std::vector<ColumnSpec> weights{FieldSpec{"weight", "weight", {'f', 8}}};
    return message_of([&] { mixed({}, first, second, weights); }, ErrorKind::InvalidArgument);
  };
  const FieldRows integers = first_rows(false, R"([["token","<u2"],["weight","<u4"]])");
  const FieldRows pairs = first_rows(false, R"([["token","<u2"],["weight","<u2",[2]]])");
  const std::string advice = " in source 1: they make no one array; give one of them another name";
  EXPECT_EQ(refusal(first_rows(false), integers), "field weight: float32 in source 0, uint32" + advice);
  EXPECT_EQ(refusal(integers, pairs), "field weight: uint32 in source 0, uint16 [2]" + advice);
  EXPECT_EQ(refusal(first_rows(false), bare_rows(false, 1)), "the records have no field weight");
}

TEST(FieldsApart, SubArraysLieEndToEndAndThereAreNoRecords) {
  FieldRows rows{.fields = R"([["a","|u1"],["b","<u2",[2]],["c","<u4"]])", .length = 3, .apart = true};
  for (std::uint32_t i = 0; i < 12; ++i) {
    put_values(rows.bytes, static_cast<std::uint8_t>(i), static_cast<std::uint16_t>(100 + i),
               static_cast<std::uint16_t>(200 + i), 1000 + i);
  }
  const auto batch = batch_of(rows,
                              {FieldSpec{"b", "b", {'u', 2}}, FieldSpec{"inputs", "c", {'u', 4}, 0, 1},
                               FieldSpec{"labels", "c", {'i', 8}, 1, 1, true}},
                              {2, 0});
  EXPECT_FALSE(batch->has_records());
  EXPECT_EQ(batch->arrays[0].shape.dims, (Dims{2, 3, 2}));
  EXPECT_EQ(values_of<std::uint16_t>(*batch, 0),
            (std::vector<std::uint16_t>{106, 206, 107, 207, 108, 208, 100, 200, 101, 201, 102, 202}));
  EXPECT_EQ(values_of<std::uint32_t>(*batch, 1), (std::vector<std::uint32_t>{1006, 1007, 1000, 1001}));
  EXPECT_EQ(values_of<std::int64_t>(*batch, 2), (std::vector<std::int64_t>{1007, 1008, 1001, 1002}));
}

}  // namespace
}  // namespace penstock::testing
