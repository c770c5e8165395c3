#include "core/base/json.h"

#include "core/base/error.h"
#include "tests/native/message_of.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <random>

namespace penstock {
namespace {

std::string refusal(const std::string& text, std::size_t max_bytes = kMaxJsonTextBytes) {
  std::string checked;
  try {
    check_json_strict(text, "x.json", max_bytes);
  } catch (const Error& error) {
    checked = error.what();
  }
  try {
    parse_json_strict(text, "x.json", max_bytes);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Corruption);
    EXPECT_EQ(error.what(), checked);
    return error.what();
  }
  EXPECT_EQ(checked, "");
  return "";
}

TEST(Json, ValidTextGivesWhatNlohmannGives) {
  for (const char* text : {"null", "[]", "{}", R"({"a":[1,-2,3.5,{"b":"\u00e9"}],"c":{"d":[[],[{}]]},"e":true})", " 7 ",
                           "18446744073709551615", R"([{"k":1},{"k":2}])"}) {
    EXPECT_EQ(parse_json_strict(text, "x"), nlohmann::json::parse(text)) << text;
  }
}

TEST(Json, BrokenTextIsCorruptionThatTellsTheByte) {
  EXPECT_EQ(refusal(R"({"a": nope})"), "x.json: not valid JSON at byte 8");
  for (const char* text :
       {"", "{", "[1,]", "NaN", "[Infinity]", "{\"a\":1}x", "\"\xff\"", "01", "'a'", "[1e999]", "//\n1"}) {
    EXPECT_NE(refusal(text), "") << text;
  }
  EXPECT_EQ(refusal("[1e999]"), "x.json: a number beyond the range of a double at byte 6");
}

TEST(Json, KeysThatStandTwiceDepthAndSizeAreRefused) {
  EXPECT_EQ(refusal(R"({"a":1,"b":{"c":1,"c":1}})"), "x.json: the key \"c\" stands twice in one object");
  EXPECT_EQ(refusal(R"({"a":1,"b":{"a":1}})"), "");
  EXPECT_EQ(refusal(std::string(32, '[') + std::string(32, ']')), "");
  EXPECT_EQ(refusal(std::string(33, '[') + std::string(33, ']')), "x.json: JSON nested more than 32 deep");
  EXPECT_NE(refusal(std::string(5'000'000, '[')), "");
  EXPECT_EQ(refusal("[1, 2, 3]", 9), "");
  EXPECT_EQ(refusal("[1, 2, 3]", 8), "x.json: 9 bytes of JSON, at most 8 are accepted");
}

TEST(Json, TokensAndOpenKeysAreBounded) {
  const std::string most(kMaxJsonTokenBytes - 2, 'x');
  EXPECT_EQ(refusal("[\"" + most + "\",\"" + most + "\"]"), "");
  for (const std::string& token : {"\"" + most + "xxxx\"", "\"" + most + "xxxx", std::string(most.size() + 4, '7')}) {
    EXPECT_NE(refusal("[" + token + "]").find("2,097,152 bytes of JSON without a separator at byte 1"),
              std::string::npos);
  }
  std::string keys = "{";
  for (std::size_t i = 0; i <= kMaxJsonOpenKeys; ++i) keys += "\"" + std::to_string(i) + "\":1,";
  keys.back() = '}';
  EXPECT_THROW(check_json_strict(keys, "x.json"), Error);
}

TEST(Json, MembersOfAnotherTypeAreRefused) {
  const auto object =
      parse_json_strict(R"({"zero":0,"max":18446744073709551615,"over":18446744073709551616,"minus":-1,"real":1.0,)"
                        R"("text":"x","true":true,"object":{},"array":[]})",
                        "m");
  EXPECT_EQ(get_u64(object, "zero", "m"), 0U);
  EXPECT_EQ(get_u64(object, "max", "m"), UINT64_MAX);
  EXPECT_EQ(get_string(object, "text", "m"), "x");
  EXPECT_TRUE(get_bool(object, "true", "m"));
  EXPECT_TRUE(get_object(object, "object", "m").empty());
  EXPECT_TRUE(get_array(object, "array", "m").empty());
  EXPECT_EQ(find_member(object, "none", "m"), nullptr);
  for (const char* key : {"over", "minus", "real", "text", "none"})
    EXPECT_THROW(get_u64(object, key, "m"), Error) << key;
  EXPECT_EQ(testing::message_of([&] { get_u64(object, "minus", "dataset.json"); }, ErrorKind::Corruption),
            "dataset.json: \"minus\" is -1, an integer from 0 to 2^64 - 1 was expected");
  EXPECT_THROW(get_string(object, "true", "m"), Error);
  EXPECT_THROW(get_bool(object, "text", "m"), Error);
  EXPECT_THROW(get_object(object, "array", "m"), Error);
  EXPECT_THROW(get_array(object, "object", "m"), Error);
  EXPECT_THROW(get_member(object, "none", "m"), Error);
  EXPECT_THROW(get_member(parse_json_strict("[]", "m"), "text", "m"), Error);
}

TEST(Json, RandomlyChangedTextNeverDoesAnythingButParseOrRefuse) {
  const std::string good = R"({"a":[1,-2,3.5e2,{"b":"\u00e9\n"}],"c":{"d":[[],[{}]]},"e":true,"f":null})";
  std::mt19937 random(1);
  int refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text = good;
    for (unsigned k = 0; k <= random() % 3; ++k) {
      // Some are taken out, or one is put in, or both: one stands in the place of others.
      text.replace(random() % text.size(), random() % 3, random() % 3 == 0 ? 0 : 1, static_cast<char>(random()));
    }
    refused += refusal(text).empty() ? 0 : 1;
  }
  EXPECT_GT(refused, 5'000);
  EXPECT_LT(refused, 20'000);
}

}  // namespace
}  // namespace penstock
