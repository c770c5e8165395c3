// DocumentBounds against a list: the forms of datatrove and litdata, ranges around tokens, what is refused.
#include "layout/documents/document_bounds.h"

#include "layout/dataset.h"
#include "tests/native/layout/drive.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace penstock::testing {
namespace {

using layout::BoundsArray;
using layout::DocumentBounds;

constexpr BoundsArray kEnds{};                                                                        // datatrove's
constexpr BoundsArray kOffsets{.offset = 4, .width = 4, .has_first = true, .base = 4008, .unit = 2};  // of litdata

class DocumentBoundsTest : public ::testing::Test {
 protected:
  // The file of documents that end at these tokens.
  layout::ForeignFile file(const BoundsArray& array, const std::vector<std::uint64_t>& ends) {
    std::vector<std::uint64_t> values = ends;
    if (array.has_first) values.insert(values.begin(), 0);
    for (std::uint64_t& each : values) each = array.base + each * array.unit;
    std::vector<std::byte> bytes(array.offset);
    const auto append = [&](const auto& typed) {
      const std::vector<std::byte> more = bytes_of(typed);
      bytes.insert(bytes.end(), more.begin(), more.end());
    };
    if (array.width == 4) {
      append(std::vector<std::uint32_t>(values.begin(), values.end()));
    } else {
      append(values);
    }
    return put(bytes);
  }
  layout::ForeignFile put(const std::vector<std::byte>& bytes) {
    write_file(folder_.path("bounds"), bytes);
    return layout::ForeignFile(local(folder_.path("bounds")));
  }
  std::string refusal(const BoundsArray& array, const std::vector<std::uint64_t>& ends, std::uint64_t tokens) {
    const layout::ForeignFile index = file(array, ends);
    return message_of(
        [&] {
          Digest digest;
          DocumentBounds(index, array, ends.size(), tokens, digest);
        },
        ErrorKind::Corruption);
  }

  TemporaryFolder folder_;
};

std::vector<std::uint64_t> uneven_ends(std::uint64_t documents) {
  std::vector<std::uint64_t> ends;
  for (std::uint64_t i = 0, end = 0; i < documents; ++i) ends.push_back(end += i * 7919 % 5);  // some are empty
  return ends;
}

std::vector<std::uint64_t> starts_of(const DocumentBounds& bounds, const layout::ForeignFile& index,
                                     std::uint64_t first, std::uint64_t stop) {
  const DocumentBounds::Place place = bounds.place(first, stop);
  std::vector<std::byte> bytes(place.bytes);
  index.read(place.offset, bytes);
  layout::Shard shard;
  shard.index = index.file();
  std::vector<std::uint64_t> starts(stop - first + 1);
  bounds.starts(shard, first, bytes.data(), starts);
  return starts;
}

// Samples are kept of each 512 documents: counts around one and two blocks.
TEST_F(DocumentBoundsTest, GiveWhereEachDocumentBeginsAndRangesThatHoldAllOfATokenRange) {
  for (const BoundsArray& array : {kEnds, kOffsets}) {
    for (const std::uint64_t documents : {1, 2, 511, 512, 513, 1024, 1025, 1700}) {
      const std::vector<std::uint64_t> ends = uneven_ends(documents);
      const std::uint64_t tokens = ends.back();
      const layout::ForeignFile index = file(array, ends);
      Digest digest;
      const DocumentBounds bounds(index, array, documents, tokens, digest);
      for (std::uint64_t i = 0; i < documents; ++i) {
        const std::vector<std::uint64_t> starts = starts_of(bounds, index, i, i + 1);
        ASSERT_EQ(starts[0], i == 0 ? 0 : ends[i - 1]);
        ASSERT_EQ(starts[1], ends[i]);
      }
      for (std::uint64_t from = 0; from < tokens; from += 37) {
        const std::uint64_t to = std::min(from + 50, tokens);
        const DocumentBounds::Range range = bounds.around(from, to);
        const std::vector<std::uint64_t> starts = starts_of(bounds, index, range.first, range.stop);
        ASSERT_LE(starts.front(), from);
        ASSERT_GE(starts.back(), to);
        ASSERT_LE(range.stop - range.first, 2 * DocumentBounds::kBlock) << "a bounded range";
      }
    }
  }
}

TEST_F(DocumentBoundsTest, OfDocumentsThatCannotBeAreRefused) {
  EXPECT_NE(refusal(kEnds, {5, 3, 9}, 9).find("document 1 ends at token 3"), std::string::npos);
  EXPECT_NE(refusal(kEnds, {5, 8}, 9).find("its 2 documents end at token 8 of 9"), std::string::npos);
  EXPECT_NE(refusal(kEnds, {5, 10}, 9).find("document 1 ends at token 10"), std::string::npos);
  EXPECT_NE(refusal(kEnds, {UINT64_MAX}, 9).find("document 0"), std::string::npos);
  EXPECT_NE(refusal(kOffsets, {5, 3, 9}, 9).find("document 1 ends at byte 4,014"), std::string::npos);
}

TEST_F(DocumentBoundsTest, OffsetsBetweenTokensAreRefused) {
  std::vector<std::byte> bytes = bytes_of(std::vector<std::uint32_t>{0, 4008, 4011, 4012});
  const layout::ForeignFile index = put(bytes);
  const std::string said = message_of(
      [&] {
        Digest digest;
        DocumentBounds(index, kOffsets, 2, 2, digest);
      },
      ErrorKind::Corruption);
  EXPECT_NE(said.find("4,011"), std::string::npos) << said;
}

TEST_F(DocumentBoundsTest, AFileThatChangedAfterItWasOpenedIsRefused) {
  const layout::ForeignFile index = file(kEnds, {5, 7, 9});
  Digest digest;
  const DocumentBounds bounds(index, kEnds, 3, 9, digest);
  file(kEnds, {5, 700, 9});
  EXPECT_NE(message_of([&] { starts_of(bounds, index, 1, 2); }, ErrorKind::Corruption).find("changed"),
            std::string::npos);
}

TEST_F(DocumentBoundsTest, MayBeOfNoDocuments) {
  const layout::ForeignFile index = file(kEnds, {});
  Digest digest;
  const DocumentBounds bounds(index, kEnds, 0, 0, digest);
  EXPECT_EQ(bounds.around(0, 0).stop, 0U);
}

}  // namespace
}  // namespace penstock::testing
