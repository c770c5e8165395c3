#include "text/written.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace penstock::text {
namespace {

std::string text_of(const ByteVector& bytes) {
  return {bytes.begin(), bytes.end()};
}

std::string float_of(double value) {
  ByteVector out;
  put_float(out, value);
  return text_of(out);
}

TEST(Written, FloatsAsReprHasThem) {
  EXPECT_EQ(float_of(0.0), "0.0");
  EXPECT_EQ(float_of(-0.0), "-0.0");
  EXPECT_EQ(float_of(1e5), "100000.0");
  EXPECT_EQ(float_of(-123.25), "-123.25");
  EXPECT_EQ(float_of(9999999999999998.0), "9999999999999998.0");
  EXPECT_EQ(float_of(1e15), "1000000000000000.0");
  EXPECT_EQ(float_of(1e16), "1e+16");
  EXPECT_EQ(float_of(-1.5e300), "-1.5e+300");
  EXPECT_EQ(float_of(0.0001), "0.0001");
  EXPECT_EQ(float_of(0.00012345678901234567), "0.00012345678901234567");
  EXPECT_EQ(float_of(0.00001), "1e-05");
  EXPECT_EQ(float_of(5e-324), "5e-324");
  EXPECT_EQ(float_of(std::numeric_limits<double>::max()), "1.7976931348623157e+308");
  EXPECT_EQ(float_of(0.1 + 0.2), "0.30000000000000004");
}

TEST(Written, StringsEscapeControlsQuotesAndBackslashes) {
  ByteVector out;
  put_json_string(out, std::string_view("\0\x01\b\t\n\f\r\x1f \"\\/\x7f\xe2\x80\xa8\xf0\x9f\x98\x80", 20));
  EXPECT_EQ(text_of(out), "\"\\u0000\\u0001\\b\\t\\n\\f\\r\\u001f \\\"\\\\/\x7f\xe2\x80\xa8\xf0\x9f\x98\x80\"");
}

TEST(Written, StringsEscapeAtEveryPlace) {
  for (std::size_t size = 1; size < 40; ++size) {
    for (std::size_t at = 0; at < size; ++at) {
      std::string plain(size, 'x');
      plain[at] = '\n';
      std::string wanted(size, 'x');
      wanted.replace(at, 1, "\\n");
      ByteVector out;
      put_json_string(out, plain);
      EXPECT_EQ(text_of(out), '"' + wanted + '"');
    }
  }
}

TEST(Written, AsciiStringsEscapeInUtf16) {
  ByteVector out;
  put_ascii_json_string(out, "plain text \n\x7f \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 and more of it");
  EXPECT_EQ(text_of(out), "\"plain text \\n\\u007f \\u00e9\\u20ac\\ud83d\\ude00 and more of it\"");
}

template <typename Value>
std::string packed(Value value) {
  ByteVector out;
  put_packed(out, value);
  return text_of(out);
}

TEST(Written, PacksIntegersInTheFewestBytes) {
  EXPECT_EQ(packed(std::int64_t{127}), "\x7f");
  EXPECT_EQ(packed(std::int64_t{128}), "\xcc\x80");
  EXPECT_EQ(packed(std::int64_t{256}), std::string("\xcd\x01\x00", 3));
  EXPECT_EQ(packed(std::int64_t{65536}), std::string("\xce\x00\x01\x00\x00", 5));
  EXPECT_EQ(packed(~std::uint64_t{0}), "\xcf\xff\xff\xff\xff\xff\xff\xff\xff");
  EXPECT_EQ(packed(std::int64_t{-32}), "\xe0");
  EXPECT_EQ(packed(std::int64_t{-33}), "\xd0\xdf");
  EXPECT_EQ(packed(std::int64_t{-129}), "\xd1\xff\x7f");
  EXPECT_EQ(packed(std::int64_t{-32769}), "\xd2\xff\xff\x7f\xff");
  EXPECT_EQ(packed(std::int64_t{-2147483649}), "\xd3\xff\xff\xff\xff\x7f\xff\xff\xff");
}

TEST(Written, PacksStringsAndHeadsByTheirSize) {
  EXPECT_EQ(packed(std::string_view("ab")),
            "\xa2"
            "ab");
  EXPECT_EQ(packed(std::string_view(std::string(31, 'x')))[0], '\xbf');
  EXPECT_EQ(packed(std::string_view(std::string(32, 'x'))).substr(0, 2), "\xd9\x20");
  EXPECT_EQ(packed(std::string_view(std::string(256, 'x'))).substr(0, 3), std::string("\xda\x01\x00", 3));
  EXPECT_EQ(packed(std::string_view(std::string(65536, 'x'))).substr(0, 5), std::string("\xdb\x00\x01\x00\x00", 5));
  ByteVector out;
  put_packed_array_head(out, 15);
  put_packed_array_head(out, 16);
  put_packed_map_head(out, 15);
  put_packed_map_head(out, 65536);
  EXPECT_EQ(text_of(out), std::string("\x9f\xdc\x00\x10\x8f\xdf\x00\x01\x00\x00", 10));
}

}  // namespace
}  // namespace penstock::text
