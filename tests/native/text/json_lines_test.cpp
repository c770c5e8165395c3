#include "text/json_lines.h"

#include "core/base/error.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::text {
namespace {

using Names = std::optional<std::vector<std::string>>;
using Numbers = std::vector<std::uint64_t>;

// A block of these lines, in a buffer that ends with them.
struct Block {
  explicit Block(const std::vector<std::string>& lines) {
    for (const std::string& line : lines) {
      begins.push_back(bytes.size());
      bytes.insert(bytes.end(), line.begin(), line.end());
      ends.push_back(bytes.size());
      bytes.push_back('\n');
    }
    bytes.pop_back();
    bytes.shrink_to_fit();
  }
  [[nodiscard]] Pieces pieces() const { return {{bytes.data(), bytes.size()}, begins, ends}; }

  std::vector<char> bytes;
  Numbers begins;
  Numbers ends;
};

std::string bytes_of(const ByteVector& bytes) {
  return {bytes.begin(), bytes.end()};
}

ParsedLines parsed(const std::vector<std::string>& lines, LineColumns columns) {
  const Block block(lines);
  return JsonLines(std::move(columns)).parse(block.pieces());
}

ParsedLines texts(const std::vector<std::string>& lines) {
  return parsed(lines, {"text", false, std::vector<std::string>(), EntryCodec::None});
}

bool is_refused(const std::string& line, EntryCodec codec = EntryCodec::Json, Names names = {}) {
  return !parsed({line}, {"text", false, std::move(names), codec}).refused.empty();
}

std::string entry(const std::string& line, EntryCodec codec = EntryCodec::Json, Names names = {}) {
  const ParsedLines found = parsed({line}, {"text", false, std::move(names), codec});
  EXPECT_TRUE(found.refused.empty()) << line;
  return bytes_of(found.entries);
}

TEST(JsonLines, TextsStandEndToEnd) {
  const ParsedLines found =
      texts({R"({"text":"a\nb\u00e9\ud83d\ude00"})", R"({"text":""})", R"( { "x" : 1 , "text" : "c" })"});
  EXPECT_EQ(bytes_of(found.texts),
            "a\nb\xc3\xa9\xf0\x9f\x98\x80"
            "c");
  EXPECT_EQ(found.ends, (Numbers{9, 9, 10}));
  EXPECT_TRUE(found.refused.empty());
  EXPECT_TRUE(found.entry_ends.empty());
}

TEST(JsonLines, RefusedLinesAddNothing) {
  const ParsedLines found = parsed(
      {R"({"text":"a","n":1})", R"({"text":"b"})", R"({"text":"c","n":2})", R"({"text":"d","n":[{"x":1,"x":2}]})"},
      {"text", false, std::vector<std::string>{"n"}, EntryCodec::Json});
  EXPECT_EQ(bytes_of(found.texts), "ac");
  EXPECT_EQ(found.ends, (Numbers{1, 1, 2, 2}));
  EXPECT_EQ(bytes_of(found.entries), R"({"n":1}{"n":2})");
  EXPECT_EQ(found.entry_ends, (Numbers{7, 7, 14, 14}));
  EXPECT_EQ(found.refused, (std::vector<std::uint32_t>{1, 3}));
}

TEST(JsonLines, RefuseWhatPythonRefusesOrReadsOtherwise) {
  for (const char* line : {"",
                           "[]",
                           "1",
                           R"({"text":1})",
                           R"({"text":null})",
                           R"({"text":["a"]})",
                           R"({"x":"a"})",
                           "{\"text\":\"a\"",
                           R"({"text":"a"} x)",
                           R"({"text":"a",})",
                           "\xef\xbb\xbf{\"text\":\"a\"}",
                           "{\"text\":\"\x01\"}",
                           "{\"text\":\"\xff\"}",
                           "{\"text\":\"\xed\xa0\x80\"}",
                           R"({"text":"\ud800"})",
                           R"({"text":"\udc00"})",
                           R"({"text":"a","x":NaN})",
                           R"({"text":"a","x":Infinity})",
                           R"({"text":"a","x":1e999})",
                           R"({"text":"a","x":18446744073709551616})",
                           R"({"text":"a","x":-9223372036854775809})",
                           R"({"text":"a","x":01})",
                           "{\"text\":\"a\"}\x0c"}) {
    EXPECT_TRUE(is_refused(line)) << line;
  }
  EXPECT_FALSE(is_refused(R"({"text":"a","x":1})"));
}

TEST(JsonLines, RefuseKeysThatStandTwiceAtAnyDepth) {
  EXPECT_TRUE(is_refused(R"({"text":"a","text":"b"})"));
  EXPECT_TRUE(is_refused(R"({"text":"a","x":1,"\u0078":1})"));
  EXPECT_TRUE(is_refused(R"({"text":"a","x":[1,[{"y":{"z":1,"z":1}}]]})"));
  EXPECT_TRUE(is_refused(R"({"text":"a","x":[{"y":1},{"y":{"a":[]},"z":2,"y":3}]})", EntryCodec::None,
                         std::vector<std::string>()));
  EXPECT_FALSE(is_refused(R"({"text":"a","x":[{"y":1},{"y":{"y":1}}]})"));
  std::string many = R"({"text":"a")";
  for (int i = 0; i < 40; ++i) many += ",\"k" + std::to_string(i) + "\":0";
  EXPECT_FALSE(is_refused(many + "}"));
  EXPECT_TRUE(is_refused(many + ",\"k7\":0}"));
}

TEST(JsonLines, RefuseWhatIsNestedTooDeep) {
  const auto nested = [](std::size_t depth) {
    return R"({"text":"a","x":)" + std::string(depth - 1, '[') + std::string(depth - 1, ']') + "}";
  };
  EXPECT_FALSE(is_refused(nested(250)));
  EXPECT_TRUE(is_refused(nested(257)));
}

TEST(JsonLines, EntriesHaveTheColumnsAskedFor) {
  const std::string line = R"({"b":2, "text":"t", "a":{"x":[1, 2.50, true, null]}, "c":"\u00e9\/\u007f\u2028\""})";
  EXPECT_EQ(entry(line), "{\"b\":2,\"a\":{\"x\":[1,2.5,true,null]},\"c\":\"\xc3\xa9/\x7f\xe2\x80\xa8\\\"\"}");
  EXPECT_EQ(entry(line, EntryCodec::Json, {{"a", "b", "a"}}), R"({"a":{"x":[1,2.5,true,null]},"b":2})");
  EXPECT_EQ(entry(line, EntryCodec::Json, {{"text"}}), R"({"text":"t"})");
  EXPECT_EQ(entry(R"({"text":""})"), "{}");
  EXPECT_EQ(entry(R"({"text":"","x":-0,"y":-0.0,"z":[],"n":{}})"), R"({"x":0,"y":-0.0,"z":[],"n":{}})");
  EXPECT_TRUE(is_refused(line, EntryCodec::Json, {{"d"}}));
}

TEST(JsonLines, RawEntriesAreOneString) {
  const std::string line = R"({"b":2,"text":"t","c":"x\ny"})";
  EXPECT_EQ(entry(line, EntryCodec::Raw, {{"c"}}), "x\ny");
  EXPECT_TRUE(is_refused(line, EntryCodec::Raw, {{"b"}}));
  EXPECT_TRUE(is_refused(line, EntryCodec::Raw));
  EXPECT_TRUE(is_refused(R"({"text":"t"})", EntryCodec::Raw));
  EXPECT_EQ(entry(R"({"text":"t","c":"d"})", EntryCodec::Raw), "d");
}

TEST(JsonLines, PackedEntries) {
  EXPECT_EQ(entry(R"({"text":"t","a":[1,-1,"s",null,true,false,{"k":1.5}],"b":300})", EntryCodec::Msgpack),
            std::string("\x82\xa1"
                        "a\x97\x01\xff\xa1"
                        "s\xc0\xc3\xc2\x81\xa1"
                        "k\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00\xa1"
                        "b\xcd\x01\x2c",
                        28));
}

TEST(JsonLines, IdsAreIntegersAlone) {
  const LineColumns columns{"ids", true, std::vector<std::string>(), EntryCodec::None};
  const ParsedLines found =
      parsed({R"({"ids":[1,-2,9223372036854775807]})", R"({"ids":[]})", R"({"ids":[3,4.0]})", R"({"ids":[5,true]})",
              R"({"ids":[9223372036854775808]})", R"({"ids":3})", R"({"ids":[[3]]})", R"({"ids":[6]})"},
             columns);
  EXPECT_EQ(found.ids, (std::vector<std::int64_t>{1, -2, 9223372036854775807, 6}));
  EXPECT_EQ(found.ends, (Numbers{3, 3, 3, 3, 3, 3, 3, 4}));
  EXPECT_EQ(found.refused, (std::vector<std::uint32_t>{2, 3, 4, 5, 6}));
}

// Each line with the block's end right behind it, and with room there, which the fast way needs.
TEST(JsonLines, IdsAreThoseOfTheOutermostColumnHoweverTheyAreRead) {
  const LineColumns columns{"ids", true, std::nullopt, EntryCodec::Json};
  const std::vector<std::string> lines{R"({"ids":[1,23,456,7890,12345,678901,1234567],"a":1})",
                                       R"({"ids": [0, 10, 12345678, 99999999999], "a": "ids"})",
                                       R"({"a":1,"ids":[]})",
                                       R"({"a":{"ids":[1,2]},"ids":[]})",
                                       R"({"a":{"ids":[1,2]},"ids":[3]})",
                                       R"({"\"ids":[1,2],"ids":[3]})",
                                       R"({"a":"\"ids\":[1,2]","ids":[3]})",
                                       R"({"a":",\"ids\":[1,2]{","ids":[3]})",
                                       R"({"a":["ids",[1]],"ids" : [ 4 , 5 ] })",
                                       R"({"a":"ids","ids":[-1,7]})",
                                       R"({"\u0069ds":[8,9]})",
                                       "{\"ids\":[\t1,\r2 ]}"};
  const std::vector<std::string> wrong{
      R"({"ids":[01]})",      R"({"ids":[1,]})",          R"({"ids":[1 2]})",
      R"({"ids":[1.0]})",     R"({"ids":[1e2]})",         R"({"ids":[1,2})",
      R"({"ids":[1,2)",       R"({"ids":[1],"ids":[2]})", R"({"ids":[1],"a":{"x":1,"x":2}})",
      R"({"a,"ids":[1]})",    R"([{"ids":[1]}])",         R"({"ids":[1]}})",
      R"({"a":1},"ids":[1])", R"({"ids":[1],"a":NaN})",   R"({"ids":[[1]]})",
      R"({"ids":[,1]})"};
  for (const std::string& line : lines) {
    const ParsedLines tight = parsed({line}, columns);
    const ParsedLines roomy = parsed({line, std::string(100, ' ')}, columns);
    EXPECT_TRUE(tight.refused.empty()) << line;
    EXPECT_EQ(tight.ids, roomy.ids) << line;
    EXPECT_EQ(tight.entries, roomy.entries) << line;
  }
  for (const std::string& line : wrong) {
    const ParsedLines roomy = parsed({line, std::string(100, '1') + "]}"}, columns);
    EXPECT_EQ(roomy.refused.size(), 2U) << line;
    EXPECT_TRUE(roomy.ids.empty()) << line;
    EXPECT_EQ(parsed({line}, columns).refused.size(), 1U) << line;
  }
  const ParsedLines found = parsed({R"({"ids":[3,4],"a":1})", R"({"a":2,"ids":[5]})"},
                                   {"ids", true, std::vector<std::string>{"ids", "a"}, EntryCodec::Json});
  EXPECT_EQ(bytes_of(found.entries), R"({"ids":[3,4],"a":1}{"ids":[5],"a":2})");
}

TEST(JsonLines, LongLinesAreReadAndShortOnesBehindThem) {
  const std::string whole(std::size_t{17} << 20, 'x');
  const ParsedLines found = texts({R"({"text":"a"})", R"({"text":")" + whole + "\"}", R"({"text":"b"})"});
  EXPECT_TRUE(found.refused.empty());
  EXPECT_EQ(bytes_of(found.texts), "a" + whole + "b");
}

TEST(JsonLines, WhatFollowsALineIsNotReadAsItsPart) {
  const std::string block = R"({"text":"a"}1,"x":[{}]}}}}"\)" + std::string(100, '"');
  const Numbers begins{0};
  const Numbers ends{12};
  JsonLines lines({"text", false, {}, EntryCodec::Json});
  const ParsedLines found = lines.parse({block, begins, ends});
  EXPECT_EQ(bytes_of(found.texts), "a");
  EXPECT_EQ(bytes_of(found.entries), "{}");
  const Numbers early{11};
  EXPECT_EQ(lines.parse({block, begins, early}).refused.size(), 1U);
  const std::string list = R"({"ids":[1,2]})" + std::string(100, ' ');
  const Numbers within{10};
  JsonLines lists({"ids", true, {}, EntryCodec::Json});
  EXPECT_EQ(lists.parse({list, begins, within}).refused.size(), 1U);
}

TEST(JsonLines, RefuseWrongUse) {
  EXPECT_THROW(JsonLines({"text", false, std::vector<std::string>(), EntryCodec::Json}), Error);
  EXPECT_THROW(JsonLines({"text", false, std::nullopt, EntryCodec::None}), Error);
  JsonLines lines({"text", false, std::nullopt, EntryCodec::Json});
  const Numbers begins{0};
  const Numbers ends{3};
  EXPECT_THROW(static_cast<void>(lines.parse({"{}", begins, ends})), Error);
}

}  // namespace
}  // namespace penstock::text
