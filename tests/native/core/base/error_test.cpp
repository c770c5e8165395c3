#include "core/base/error.h"

#include <gtest/gtest.h>

#include <string>

namespace penstock {
namespace {

TEST(Excerpt, ShortTextStaysAsItIs) {
  for (const char* text : {"", "corpus", "é€😀", "with \"quotes\""}) EXPECT_EQ(excerpt(text), text);
  EXPECT_EQ(excerpt(std::string(80, 'x')), std::string(80, 'x'));
}

TEST(Excerpt, LongTextIsCutAtACharacterAndSaysHowLongItIs) {
  EXPECT_EQ(excerpt(std::string(1'000'000, 'x')), std::string(80, 'x') + "… (1,000,000 bytes)");
  std::string many;
  for (int i = 0; i < 81; ++i) many += "é";
  EXPECT_EQ(excerpt(many), many.substr(0, 160) + "… (162 bytes)");
}

TEST(Excerpt, WhatIsNoTextIsShownAsBytes) {
  EXPECT_EQ(excerpt("a\nb\x7f"), "a\\x0ab\\x7f");
  EXPECT_EQ(excerpt(std::string_view("\0\x1b[2J", 5)), "\\x00\\x1b[2J");
  // Cut, too long a form, a surrogate, beyond the last character, a control character of two bytes.
  EXPECT_EQ(excerpt("\xff"), "\\xff");
  EXPECT_EQ(excerpt("\xe2\x82"), "\\xe2\\x82");
  EXPECT_EQ(excerpt("\xc0\x80"), "\\xc0\\x80");
  EXPECT_EQ(excerpt("\xe0\x80\x80"), "\\xe0\\x80\\x80");
  EXPECT_EQ(excerpt("\xed\xa0\x80"), "\\xed\\xa0\\x80");
  EXPECT_EQ(excerpt("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(excerpt("\xc2\x80"), "\\xc2\\x80");
}

}  // namespace
}  // namespace penstock
