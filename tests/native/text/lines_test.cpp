#include "text/lines.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::text {
namespace {

using Found = std::vector<std::pair<std::uint64_t, std::string>>;

Found documents(std::string_view block, bool is_json, bool strip_mark = false) {
  const Lines lines = split_lines(block, is_json, strip_mark);
  Found found;
  for (std::size_t i = 0; i < lines.begins.size(); ++i) {
    found.emplace_back(lines.numbers[i], block.substr(lines.begins[i], lines.ends[i] - lines.begins[i]));
  }
  return found;
}

TEST(Lines, EndAtNewlinesAlone) {
  EXPECT_EQ(documents("{}\n[\r]\n\x0b{}", true), (Found{{0, "{}"}, {1, "[\r]"}, {2, "\x0b{}"}}));
  EXPECT_EQ(split_lines("a\nb\n", true, false).lines, 2U);
  EXPECT_EQ(split_lines("a\nb", true, false).lines, 2U);
  EXPECT_EQ(split_lines("", true, false).lines, 0U);
  EXPECT_EQ(split_lines("\n\n", true, false).lines, 2U);
}

TEST(Lines, OfJsonLoseWhiteSpaceAtTheirEnd) {
  EXPECT_EQ(documents(" {} \t\r\x0b\x0c\n", true), (Found{{0, " {}"}}));
}

TEST(Lines, OfTextLoseNewlinesAlone) {
  EXPECT_EQ(documents(" a \t\r\r\n b\r", false), (Found{{0, " a \t"}, {1, " b"}}));
}

TEST(Lines, ThatAreBlankCountAndAreNoDocuments) {
  EXPECT_EQ(documents("\n \t\r\x0b\x0c\na\n\r\nb", true), (Found{{2, "a"}, {4, "b"}}));
  EXPECT_EQ(documents("\n \t\x0b\x0c\na\n\r\nb", false), (Found{{2, "a"}, {4, "b"}}));
  EXPECT_EQ(documents("\xc2\xa0\n\x1c\n", false).size(), 2U);
}

TEST(Lines, LoseTheMarkOfTheFirstOneOfJson) {
  EXPECT_EQ(documents("\xef\xbb\xbf{}\n\xef\xbb\xbf{}\n", true, true), (Found{{0, "{}"}, {1, "\xef\xbb\xbf{}"}}));
  EXPECT_EQ(documents("\xef\xbb\xbf \n{}\n", true, true), (Found{{1, "{}"}}));
  EXPECT_EQ(documents("\xef\xbb\xbf\xef\xbb\xbf{}\n", true, true), (Found{{0, "\xef\xbb\xbf{}"}}));
  EXPECT_EQ(documents("\n\xef\xbb\xbf{}\n", true, true), (Found{{1, "\xef\xbb\xbf{}"}}));
  EXPECT_EQ(documents("\xef\xbb\xbf{}\n", true, false), (Found{{0, "\xef\xbb\xbf{}"}}));
  EXPECT_EQ(documents("\xef\xbb\xbf{}\n", false, true), (Found{{0, "\xef\xbb\xbf{}"}}));
}

}  // namespace
}  // namespace penstock::text
