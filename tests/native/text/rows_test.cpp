#include "text/rows.h"

#include "core/base/error.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::text {
namespace {

using Numbers = std::vector<std::uint64_t>;

std::string text_of_entries(const Entries& entries) {
  return {entries.bytes.begin(), entries.bytes.end()};
}

template <typename T>
std::string_view memory_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

TEST(Rows, FillWritesANumberBetweenTwoTexts) {
  const Entries found = fill("{\"size\":", Numbers{0, 12, 18446744073709551615U}, "}");
  EXPECT_EQ(text_of_entries(found), "{\"size\":0}{\"size\":12}{\"size\":18446744073709551615}");
  EXPECT_EQ(found.ends, (Numbers{10, 21, 50}));
}

TEST(Rows, HaveAllKindsOfColumns) {
  const std::vector<std::int32_t> offsets{9, 0, 1, 1, 5};
  const std::vector<std::int16_t> integers{9, -1, 2, 300};
  const std::vector<float> floats{9, 0.1F, 1e16F, 3};
  const std::vector<ArrowColumn> columns{
      {"text", ArrowKind::Utf8, 0, std::string_view("\x0a"), memory_of(offsets), "a\"\xf0\x9f\x98\x80", 1},
      {"n\xc3\xa9", ArrowKind::Int, 2, {}, {}, memory_of(integers), 1},
      {"f", ArrowKind::Float, 4, {}, {}, memory_of(floats), 1},
      {"b", ArrowKind::Bool, 0, {}, {}, "\x05", 0}};
  const auto found = rows_json(columns, 2);
  ASSERT_TRUE(found);
  EXPECT_EQ(text_of_entries(found->entries),
            "{\"text\":\"a\",\"n\xc3\xa9\":-1,\"f\":0.10000000149011612,\"b\":true}"
            "{\"text\":null,\"n\xc3\xa9\":2,\"f\":1.0000000272564224e+16,\"b\":false}");
  EXPECT_EQ(text_of_entries(found->sorted),
            "{\"b\": true, \"f\": 0.10000000149011612, \"n\\u00e9\": -1, \"text\": \"a\"}"
            "{\"b\": false, \"f\": 1.0000000272564224e+16, \"n\\u00e9\": 2, \"text\": null}");
  EXPECT_EQ(found->entries.ends.size(), 2U);
}

TEST(Rows, WithoutColumnsAreEmptyObjects) {
  EXPECT_EQ(text_of_entries(rows_json({}, 2)->sorted), "{}{}");
}

TEST(Rows, AreLeftToPythonWhereItHasToSayWhy) {
  const std::vector<double> values{1, std::numeric_limits<double>::infinity()};
  EXPECT_FALSE(rows_json({{"f", ArrowKind::Float, 8, {}, {}, memory_of(values), 0}}, 2));
  EXPECT_TRUE(rows_json({{"f", ArrowKind::Float, 8, {}, {}, memory_of(values), 0}}, 1));
  EXPECT_TRUE(rows_json({{"f", ArrowKind::Float, 8, std::string_view("\x01"), {}, memory_of(values), 0}}, 2));
  const std::vector<std::int64_t> offsets{0, 1};
  EXPECT_FALSE(rows_json({{"t", ArrowKind::LargeUtf8, 0, {}, memory_of(offsets), "\xff", 0}}, 1));
}

TEST(Rows, RefuseWrongBuffers) {
  const std::vector<std::int32_t> down{1, 0};
  const std::vector<std::int32_t> high{0, 3};
  const std::vector<std::int32_t> negative{-1, 0};
  for (const auto& offsets : {down, high, negative}) {
    EXPECT_THROW(static_cast<void>(rows_json({{"t", ArrowKind::Utf8, 0, {}, memory_of(offsets), "ab", 0}}, 1)), Error);
  }
  EXPECT_THROW(static_cast<void>(rows_json({{"t", ArrowKind::Utf8, 0, {}, memory_of(high), "abc", 0}}, 2)), Error);
  EXPECT_THROW(static_cast<void>(rows_json({{"n", ArrowKind::Int, 4, {}, {}, "1234567", 0}}, 2)), Error);
  EXPECT_THROW(static_cast<void>(rows_json({{"n", ArrowKind::Int, 3, {}, {}, "123456", 0}}, 2)), Error);
  EXPECT_THROW(static_cast<void>(rows_json({{"n", ArrowKind::Float, 2, {}, {}, "1234", 0}}, 2)), Error);
  EXPECT_THROW(static_cast<void>(rows_json({{"b", ArrowKind::Bool, 0, {}, {}, "1", 8}}, 1)), Error);
  EXPECT_THROW(static_cast<void>(rows_json({{"b", ArrowKind::Bool, 0, std::string_view(), {}, "1", 0}}, 1)), Error);
  EXPECT_THROW(static_cast<void>(rows_json({{"n", ArrowKind::Int, 8, {}, {}, "", ~std::uint64_t{0}}}, 2)), Error);
  EXPECT_THROW(static_cast<void>(rows_json(
                   {{"b", ArrowKind::Bool, 0, {}, {}, "1", 0}, {"b", ArrowKind::Bool, 0, {}, {}, "1", 0}}, 1)),
               Error);
}

}  // namespace
}  // namespace penstock::text
