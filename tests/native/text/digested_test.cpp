#include "text/digested.h"

#include "core/base/error.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::text {
namespace {

using Numbers = std::vector<std::uint64_t>;

std::string digested(const Pieces& documents, const Pieces& known) {
  std::string out(digested_bytes(documents, known), '\0');
  write_digested(documents, known, out.data());
  return out;
}

TEST(Digested, HasTheSizesAndTheBytesOfEach) {
  const Numbers begins{2, 5, 5};
  const Numbers ends{4, 5, 17};
  const Pieces documents{"..ab.0123456789xy", begins, ends};
  EXPECT_EQ(digested(documents, {}), "2,0:ab0,0:12,0:0123456789xy");
  const Numbers known_ends{2, 5, 5};
  EXPECT_EQ(digested(documents, {"{}xyz", {}, known_ends}), "2,2:ab{}0,3:xyz12,0:0123456789xy");
  EXPECT_EQ(digested({}, {}), "");
}

TEST(Digested, RefusesPiecesOutsideOfTheirBytes) {
  const Numbers low{1};
  const Numbers high{3};
  const Numbers two{1, 2};
  EXPECT_THROW(static_cast<void>(digested_bytes({"ab", low, high}, {})), Error);
  EXPECT_THROW(static_cast<void>(digested_bytes({"abcd", high, low}, {})), Error);
  EXPECT_THROW(static_cast<void>(digested_bytes({"abcd", two, high}, {})), Error);
  EXPECT_THROW(static_cast<void>(digested_bytes({"abcd", low, high}, {"ab", {}, two})), Error);
  EXPECT_THROW(static_cast<void>(digested_bytes({"abcd", low, high}, {"ab", {}, high})), Error);
}

}  // namespace
}  // namespace penstock::text
