#include "core/rows/schema.h"

#include "core/base/error.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace penstock {
namespace {

TEST(Schema, OneField) {
  const Schema schema = Schema::parse(R"([ ["token", "<u4"] ])");
  ASSERT_EQ(schema.leaves().size(), 1U);
  EXPECT_EQ(schema.record_bytes(), 4U);
  EXPECT_EQ(schema.json(), R"([["token","<u4"]])");
  EXPECT_EQ(schema.find("token"), 0);
  EXPECT_EQ(schema.find("b"), -1);
  EXPECT_TRUE(schema.leaves()[0].is_integer());
}

TEST(Schema, NestedAndSubArraysAreFlattenedWithOffsetsAndStrides) {
  const Schema schema =
      Schema::parse(R"([["a","<u2"],["b",[["x","<f4"],["y","|u1",[3]]],[2]],["c","<f4",[2,2]],["s","|S16"]])");
  ASSERT_EQ(schema.leaves().size(), 5U);
  EXPECT_EQ(schema.record_bytes(), 2U + 2 * 7 + 16 + 16);
  const Leaf& y = schema.leaves()[2];
  EXPECT_EQ(y.name, "b.y");
  EXPECT_EQ(y.offset_bytes, 6U);
  EXPECT_EQ(y.dims, (std::vector<std::uint64_t>{2, 3}));
  EXPECT_EQ(y.stride_bytes, (std::vector<std::uint64_t>{7, 1}));
  EXPECT_EQ(y.count(), 6U);
  const Leaf& c = schema.leaves()[3];
  EXPECT_EQ(c.offset_bytes, 16U);
  EXPECT_EQ(c.stride_bytes, (std::vector<std::uint64_t>{8, 4}));
  EXPECT_EQ(Schema::parse(schema.json()).json(), schema.json());
}

TEST(Schema, NamesOfNestedFieldsAreBounded) {
  std::string fields;
  for (int i = 0; i < 20'000; ++i) fields += fmt::format(R"({}["{}","|u1"])", i == 0 ? "" : ",", i);
  EXPECT_EQ(Schema::parse("[[\"a\",[" + fields + "]]]").leaves().size(), 20'000U);
  // 20,000 leaves of 500 kB of name each are 10 GB.
  EXPECT_THROW(Schema::parse("[[\"" + std::string(500'000, 'a') + "\",[" + fields + "]]]"), Error);
}

TEST(Schema, RefusesWhatCannotBeStored) {
  for (const char* text : {
           "",
           "null",
           "{}",
           "[]",
           "[[]]",
           R"([["a"]])",
           R"([["a","<u4",[2],1]])",
           R"([[1,"<u4"]])",
           R"([["a",">u4"]])",
           R"([["a","=u4"]])",
           R"([["a","|u4"]])",
           R"([["a","<u1"]])",
           R"([["a","<u3"]])",
           R"([["a","|O8"]])",
           R"([["a","<U4"]])",
           R"([["a","<M8"]])",
           R"([["a","<f16"]])",
           R"([["a","|S0"]])",
           R"([["a","|V0"]])",
           R"([["a","<u"]])",
           R"([["a","<u-4"]])",
           R"([["a","|S99999999999999999999"]])",
           R"([["a","|S1048577"]])",
           R"([["","<u4"]])",
           R"([["a.b","<u4"]])",
           R"([["a\u0000b","<u4"]])",
           R"([["a","<u4"],["a","<u2"]])",
           R"([["a",[]]])",
           R"([["a","<u4",[]]])",
           R"([["a","<u4",[0]]])",
           R"([["a","<u4",[-1]]])",
           R"([["a","<u4",[1.5]]])",
           R"([["a","<u4",2]])",
           R"([["a","<u4",[1048576,1048576,1048576,1048576]]])",
           R"([["a","|S1048576"],["b","|u1"]])",
           R"([["a","<u4"]] x)",
           R"([["a",NaN]])",
       }) {
    try {
      static_cast<void>(Schema::parse(text));
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::InvalidArgument) << text;
    }
  }
  std::string deep = R"("<u4")";
  for (int i = 0; i < 100; ++i) deep.assign("[[\"a\"," + deep + "]]");
  EXPECT_THROW(static_cast<void>(Schema::parse(deep)), Error);
}

}  // namespace
}  // namespace penstock
