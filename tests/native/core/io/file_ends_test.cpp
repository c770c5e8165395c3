// The ends of files that were asked for ahead: what they give is what the file has, and what they lack they refuse.
#include "core/io/file_ends.h"

#include "tests/native/core/io/wanted_read.h"

namespace penstock::testing {
namespace {

TEST(FileEnds, GiveEveryRangeThatLiesInThemAndNoOtherAndNoneOfAnotherFileOrOnceTheyAreDropped) {
  for (const std::uint64_t bytes : {0, 2, 4095, 4096, 4097, 6000, 8192, 8193, 100'000}) {
    const std::string file = content_of(bytes);
    FileEnds::Ends kept(bytes);
    const std::uint64_t head = kept.head.size();
    const std::uint64_t tail = kept.tail_begin();
    kept.head = file.substr(0, head);
    kept.tail = file.substr(tail);
    FileEnds ends;
    ends.keep("a", std::move(kept));
    EXPECT_EQ(ends.bytes_of("a"), bytes);
    EXPECT_FALSE(ends.bytes_of("b"));
    const std::vector<std::uint64_t> marks{0, 1, 1024, 4095, 4096, 4097, tail, tail + 1, bytes, bytes + 1};
    const auto expect = [&](bool is_dropped) {
      for (const std::uint64_t begin : marks) {
        for (const std::uint64_t end : marks) {
          if (end <= begin) continue;
          std::string out(end - begin, 'x');
          const std::span<std::byte> into = std::as_writable_bytes(std::span(out));
          const bool is_kept = !is_dropped && end <= bytes && (end <= head || begin >= tail || head >= tail);
          ASSERT_FALSE(ends.read("b", begin, into));
          ASSERT_EQ(ends.read("a", begin, into), is_kept) << begin << " to " << end << " of " << bytes;
          ASSERT_EQ(out, is_kept ? file.substr(begin, end - begin) : std::string(end - begin, 'x')) << begin;
        }
      }
    };
    expect(false);
    ends.drop();
    EXPECT_FALSE(ends.bytes_of("a"));
    expect(true);
  }
}

}  // namespace
}  // namespace penstock::testing
