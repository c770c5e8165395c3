#include "core/base/error.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

TEST(Excerpt, TextIsCutAtACharacterAndWhatIsNoTextIsShownAsBytes) {
  for (const char* text : {"", "corpus", "é€😀", "with \"quotes\""}) EXPECT_EQ(excerpt(text), text);
  EXPECT_EQ(excerpt(std::string(80, 'x')), std::string(80, 'x'));
  EXPECT_EQ(excerpt(std::string(1'000'000, 'x')), std::string(80, 'x') + "… (1,000,000 bytes)");
  std::string many;
  for (int i = 0; i < 81; ++i) many += "é";
  EXPECT_EQ(excerpt(many), many.substr(0, 160) + "… (162 bytes)");
  EXPECT_EQ(excerpt("a\nb\x7f"), "a\\x0ab\\x7f");
  EXPECT_EQ(excerpt(std::string_view("\0\x1b[2J", 5)), "\\x00\\x1b[2J");
  // No beginning, too long a form (twice), a surrogate, beyond the last, a control character of two bytes, cut.
  EXPECT_EQ(excerpt("\xff \xc0\x80 \xe0\x80\x80 \xed\xa0\x80 \xf4\x90\x80\x80 \xc2\x80 \xe2\x82"),
            "\\xff \\xc0\\x80 \\xe0\\x80\\x80 \\xed\\xa0\\x80 \\xf4\\x90\\x80\\x80 \\xc2\\x80 \\xe2\\x82");
}

}  // namespace
}  // namespace penstock
