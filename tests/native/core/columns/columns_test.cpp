// Columns of sources that differ: in the order, types and number of their fields, and in how fields lie.
#include "tests/native/core/engine/field_source.h"
#include "tests/native/core/engine/loader_fixture.h"

#include "core/batch/late_array.h"
#include "core/engine/read_rows.h"

#include <functional>
#include <string>

namespace penstock::testing {
namespace {

constexpr std::uint64_t kRows = 23;
constexpr std::uint64_t kLength = 5;

std::int64_t token_of(std::uint32_t source, std::uint64_t record) {
  return static_cast<std::int64_t>(source * 10'000 + record);
}
double weight_of(std::uint32_t source, std::uint64_t record) {
  return static_cast<double>(source) + static_cast<double>(record) / 256.0;
}

/// (token u2, weight f4) of source 0.
FieldRows first_rows(bool ragged) {
  FieldRows rows{.fields = R"([["token","<u2"],["weight","<f4"]])", .length = ragged ? 0 : kLength};
  for (std::uint64_t i = 0; i < kRows * kLength; ++i) {
    put_values(rows.bytes, static_cast<std::uint16_t>(token_of(0, i)), static_cast<float>(weight_of(0, i)));
  }
  for (std::uint64_t i = 0; i < kRows; ++i) rows.lengths.push_back(i % kLength);
  return rows;
}

/// (weight f4, token u2) of source 1: records as large, fields the other way round.
FieldRows turned_rows(bool ragged) {
  FieldRows rows = first_rows(ragged);
  rows.fields = R"([["weight","<f4"],["token","<u2"]])";
  rows.bytes.clear();
  for (std::uint64_t i = 0; i < kRows * kLength; ++i) {
    put_values(rows.bytes, static_cast<float>(weight_of(1, i)), static_cast<std::uint16_t>(token_of(1, i)));
  }
  return rows;
}

/// (other u8, token u4, weight f4), and a lead: records of 16 bytes.
FieldRows large_rows(bool ragged) {
  FieldRows rows = first_rows(ragged);
  rows.fields = R"([["other","<u8"],["token","<u4"],["weight","<f4"]])";
  rows.lead = ragged ? 0 : 3;
  rows.bytes.clear();
  for (std::uint64_t i = 0; i < kRows * kLength; ++i) {
    put_values(rows.bytes, i << 40, static_cast<std::uint32_t>(token_of(1, i)), static_cast<float>(weight_of(1, i)));
  }
  return rows;
}

/// (token u4) alone, of source 1: to int32, it needs no copy where it is not mixed.
FieldRows bare_rows(bool ragged, std::uint32_t source, const char* fields) {
  FieldRows rows = first_rows(ragged);
  rows.fields = fields;
  rows.bytes.clear();
  for (std::uint64_t i = 0; i < kRows * kLength; ++i) {
    put_values(rows.bytes, static_cast<std::uint32_t>(token_of(source, i)));
    if (rows.fields.find("weight") != std::string::npos) {
      put_values(rows.bytes, static_cast<float>(weight_of(source, i)));
    }
  }
  return rows;
}

FieldRows apart(FieldRows rows) {
  rows.apart = true;
  rows.lead = 0;
  return rows;
}

const std::vector<ColumnSpec> kBoth{FieldSpec{"token", "token", {'i', 8}}, FieldSpec{"weight", "weight", {'f', 4}}};

template <typename T>
std::vector<T> values_of(const Batch& batch, std::size_t column) {
  const PlacedArray& array = batch.arrays.at(column);
  EXPECT_EQ(array.shape.type.bytes, sizeof(T));
  std::uint64_t count = 1;
  for (const std::uint64_t dim : array.shape.dims) count *= dim;
  std::vector<T> values(count);
  std::memcpy(values.data(), batch.slab.data() + array.at, count * sizeof(T));
  return values;
}

template <typename T>
std::vector<T> late_values(const Batch& batch, const FieldSpec& spec) {
  const LateArray late(batch, spec);
  std::vector<T> values(late.shape().bytes / sizeof(T));
  late.write(reinterpret_cast<std::byte*>(values.data()));
  return values;
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
template <typename T>
std::vector<T> expected(const Batch& batch, const std::function<double(std::uint32_t, std::uint64_t)>& value) {
  const bool ragged = batch.format->shape.ragged;
  std::vector<T> values;
  for (std::uint64_t i = 0; i < batch.plan.rows; ++i) {
    if (i >= batch.plan.valid) {
      values.insert(values.end(), ragged ? 0 : kLength, T{0});
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

void expect_both(const Batch& batch) {
  const auto tokens = expected<std::int64_t>(
      batch, [](auto source, auto record) { return static_cast<double>(token_of(source, record)); });
  EXPECT_EQ(values_of<std::int64_t>(batch, 0), tokens) << "at " << batch.plan.position;
  EXPECT_EQ(values_of<float>(batch, 1), expected<float>(batch, weight_of)) << "at " << batch.plan.position;
  EXPECT_EQ(late_values<std::int64_t>(batch, std::get<FieldSpec>(kBoth[0])), tokens);
}

TEST(MixedColumns, SourcesWhoseRecordsDifferGiveTheirValuesByName) {
  for (const bool ragged : {false, true}) {
    for (const bool lends : {false, true}) {
      for (const auto& second : {turned_rows(ragged), large_rows(ragged), apart(turned_rows(ragged)),
                                 apart(large_rows(ragged)), first_rows(ragged)}) {
        Case setup;
        setup.lends = lends;
        const LoaderOptions options = mixed(setup, first_rows(ragged), second, kBoth);
        Loader loader(options);
        std::uint64_t both = 0;
        std::uint64_t batches = 0;
        for (; auto batch = next(loader); ++batches) {
          if (second.fields != first_rows(ragged).fields) {
            expect_both(*batch);
            bool other = false;
            for (const Pick& pick : batch->picks) other |= pick.source != batch->picks[0].source;
            both += other ? 1 : 0;
            const bool shown = !other && !(second.apart && batch->picks[0].source == 1);
            EXPECT_EQ(batch->has_records(), shown);
          } else {
            EXPECT_TRUE(batch->has_records());
          }
        }
        EXPECT_EQ(batches, 12U);
        if (second.fields != first_rows(ragged).fields) {
          EXPECT_GE(both, 3U);
        }
      }
    }
  }
}

TEST(MixedColumns, AColumnThatIsTheRecordsOfOneSourceIsMadeWhereTheyMeet) {
  const std::vector<ColumnSpec> specs{FieldSpec{"token", "token", {'i', 4}}};
  for (const bool ragged : {false, true}) {
    const FieldRows bare = bare_rows(ragged, 1, R"([["token","<u4"]])");
    const LoaderOptions alone = mixed({}, bare_rows(ragged, 0, R"([["token","<u4"]])"), bare, specs);
    Loader in_place(alone);
    const auto same = next(in_place);
    EXPECT_TRUE(same->arrays[0].shape.in_place);
    EXPECT_TRUE(same->has_records());
    const LoaderOptions options = mixed({}, first_rows(ragged), bare, specs);
    Loader loader(options);
    while (auto batch = next(loader)) {
      EXPECT_FALSE(batch->arrays[0].shape.in_place);
      EXPECT_EQ(values_of<std::int32_t>(*batch, 0), expected<std::int32_t>(*batch, [](auto source, auto record) {
                  return static_cast<double>(token_of(source, record));
                }));
    }
  }
}

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::InvalidArgument);
    return error.what();
  }
  return "";
}

TEST(MixedColumns, FieldsOfDifferentKindAreRefusedByNameAndTypes) {
  const std::vector<ColumnSpec> weights{FieldSpec{"weight", "weight", {'f', 8}}};
  FieldRows integers = first_rows(false);
  integers.fields = R"([["token","<u2"],["weight","<u4"]])";
  EXPECT_EQ(refusal([&] { mixed({}, first_rows(false), integers, weights); }),
            "field weight: float32 in source 0, uint32 in source 1: they make no one array; give one of them another "
            "name");
  FieldRows pairs = first_rows(false);
  pairs.fields = R"([["token","<u2"],["weight","<u2",[2]]])";
  EXPECT_EQ(refusal([&] { mixed({}, integers, pairs, weights); }),
            "field weight: uint32 in source 0, uint16 [2] in source 1: they make no one array; give one of them "
            "another name");
  const FieldRows bare = bare_rows(false, 1, R"([["token","<u4"]])");
  EXPECT_EQ(refusal([&] { mixed({}, first_rows(false), bare, weights); }), "the records have no field weight");
}

TEST(FieldsApart, RowsHaveColumnsAndNoRecords) {
  const std::vector<ColumnSpec> specs{FieldSpec{"inputs", "token", {'i', 8}, 0, 1},
                                      FieldSpec{"labels", "token", {'i', 8}, 1, 1, true}};
  for (const bool ragged : {false, true}) {
    FieldRows rows = apart(turned_rows(ragged));
    auto formats = std::make_shared<BatchFormats>();
    formats->emplace_back(std::make_shared<FieldSource>(rows), ragged ? kBoth : specs);
    const std::vector<std::uint64_t> indices{4, 0, 7, 22};
    const auto batch = read_rows(formats, indices);
    EXPECT_FALSE(batch->has_records());
    std::vector<std::int64_t> tokens;
    std::vector<std::int64_t> inputs;
    const auto& source = static_cast<const FieldSource&>(*batch->format->source);
    for (const std::uint64_t index : indices) {
      const std::uint64_t first = source.first_of(index);
      const std::uint64_t count = source.count_of(index);
      for (std::uint64_t k = 0; k < count; ++k) {
        tokens.push_back(token_of(1, first + k));
        if (k + 1 < count) inputs.push_back(tokens.back());
      }
    }
    EXPECT_EQ(values_of<std::int64_t>(*batch, 0), ragged ? tokens : inputs);
    EXPECT_EQ(late_values<std::int64_t>(*batch, {"token", "token", {'i', 8}}), tokens);
  }
}

TEST(FieldsApart, SubArraysLieEndToEnd) {
  FieldRows rows{.fields = R"([["a","|u1"],["b","<u2",[2]],["c","<u4"]])", .length = 3, .apart = true};
  for (std::uint32_t i = 0; i < 12; ++i) {
    put_values(rows.bytes, static_cast<std::uint8_t>(i), static_cast<std::uint16_t>(100 + i),
               static_cast<std::uint16_t>(200 + i), 1000 + i);
  }
  auto formats = std::make_shared<BatchFormats>();
  formats->emplace_back(std::make_shared<FieldSource>(rows),
                        std::vector<ColumnSpec>{FieldSpec{"b", "b", {'u', 2}}, FieldSpec{"c", "c", {'u', 4}}});
  const auto batch = read_rows(formats, std::vector<std::uint64_t>{2, 0});
  EXPECT_EQ(batch->arrays[0].shape.dims, (Dims{2, 3, 2}));
  EXPECT_EQ(values_of<std::uint16_t>(*batch, 0),
            (std::vector<std::uint16_t>{106, 206, 107, 207, 108, 208, 100, 200, 101, 201, 102, 202}));
  EXPECT_EQ(values_of<std::uint32_t>(*batch, 1), (std::vector<std::uint32_t>{1006, 1007, 1008, 1000, 1001, 1002}));
}

}  // namespace
}  // namespace penstock::testing
