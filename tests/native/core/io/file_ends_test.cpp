// The ends of files that were asked for ahead: what they give is what the file has, and what they lack they refuse.
#include "core/io/file_ends.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace penstock {
namespace {

std::string file_of(std::uint64_t bytes) {
  std::string text(bytes, '\0');
  for (std::uint64_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(i * 31 + i / 256);
  return text;
}

FileEnds::Ends ends_of(const std::string& file) {
  FileEnds::Ends ends(file.size());
  ends.head = file.substr(0, ends.head.size());
  ends.tail = file.substr(ends.tail_begin());
  return ends;
}

class FileEndsOf : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(FileEndsOf, GiveEveryRangeThatLiesInThemAndNoOther) {
  const std::string file = file_of(GetParam());
  const FileEnds::Ends kept = ends_of(file);
  FileEnds ends;
  ends.keep("a", kept);
  EXPECT_EQ(ends.bytes_of("a"), file.size());
  const std::uint64_t head = kept.head.size();
  const std::uint64_t tail = kept.tail_begin();
  const std::vector<std::uint64_t> marks{0, 1, 1024, 4095, 4096, 4097, tail, tail + 1, file.size(), file.size() + 1};
  for (const std::uint64_t begin : marks) {
    for (const std::uint64_t end : marks) {
      if (end <= begin) continue;
      std::string out(end - begin, 'x');
      const bool is_kept = end <= file.size() && (end <= head || begin >= tail || head >= tail);
      ASSERT_EQ(ends.read("a", begin, std::as_writable_bytes(std::span(out))), is_kept) << begin << " to " << end;
      if (is_kept) {
        EXPECT_EQ(out, file.substr(begin, end - begin)) << begin << " to " << end;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, FileEndsOf, ::testing::Values(0, 2, 4095, 4096, 4097, 6000, 8192, 8193, 100'000));

TEST(FileEnds, OtherFilesAndThoseThatWereDroppedAreNotKept) {
  FileEnds ends;
  ends.keep("a", ends_of("text"));
  std::byte first{};
  EXPECT_TRUE(ends.read("a", 0, {&first, 1}));
  EXPECT_FALSE(ends.read("b", 0, {&first, 1}));
  EXPECT_FALSE(ends.bytes_of("b"));
  ends.drop();
  EXPECT_FALSE(ends.read("a", 0, {&first, 1}));
  EXPECT_FALSE(ends.bytes_of("a"));
}

}  // namespace
}  // namespace penstock
