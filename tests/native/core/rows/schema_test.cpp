#include "core/rows/schema.h"

#include "tests/native/message_of.h"

#include <fmt/format.h>

namespace penstock::testing {
namespace {

TEST(Schema, NestedAndSubArraysAreFlattenedWithOffsetsAndStrides) {
  const Schema one = Schema::parse(R"([ ["token", "<u4"] ])");
  EXPECT_EQ(one.record_bytes(), 4U);
  EXPECT_EQ(one.json(), R"([["token","<u4"]])");
  EXPECT_EQ(one.find("token"), 0);
  EXPECT_EQ(one.find("b"), -1);
  EXPECT_TRUE(one.leaves().at(0).is_integer());
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
  std::vector<std::string> texts{"", "null", "{}", "[]", "[[]]", R"([["a"]])", R"([[1,"<u4"]])", R"([["a",[]]])"};
  for (const char* type : {">u4", "=u4", "|u4", "<u1", "<u3", "|O8", "<U4", "<M8", "<f16", "|S0", "|V0", "<u", "<u-4",
                           "|S99999999999999999999", "|S1048577"}) {
    texts.push_back(fmt::format(R"([["a","{}"]])", type));
  }
  for (const char* name : {"", "a.b", "a\\u0000b"}) texts.push_back(fmt::format(R"([["{}","<u4"]])", name));
  for (const char* shape : {"[2],1", "[]", "[0]", "[-1]", "[1.5]", "2", "[1048576,1048576,1048576,1048576]"}) {
    texts.push_back(fmt::format(R"([["a","<u4",{}]])", shape));
  }
  for (const char* text :
       {R"([["a","<u4"],["a","<u2"]])", R"([["a","|S1048576"],["b","|u1"]])", R"([["a","<u4"]] x)", R"([["a",NaN]])"}) {
    texts.emplace_back(text);
  }
  for (const std::string& text : texts) {
    SCOPED_TRACE(text);
    message_of([&] { static_cast<void>(Schema::parse(text)); }, ErrorKind::InvalidArgument);
  }
  std::string deep = R"("<u4")";
  for (int i = 0; i < 100; ++i) deep.assign("[[\"a\"," + deep + "]]");
  EXPECT_THROW(static_cast<void>(Schema::parse(deep)), Error);
}

}  // namespace
}  // namespace penstock::testing
