#include "text/wrap_ids.h"

#include "core/base/error.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <vector>

namespace penstock::text {
namespace {

using Numbers = std::vector<std::uint64_t>;
using Narrow = std::vector<std::uint32_t>;
using Wide = std::vector<std::int64_t>;

template <typename Out>
struct Wrapped {
  std::vector<Out> ids;
  Numbers lengths;
  std::int64_t wrong = 0;
};

template <typename Out, typename In>
Wrapped<Out> wrapped(const std::vector<In>& ids, std::uint64_t first, const Numbers& ends, const IdWrapping& wrapping) {
  const IdDocuments documents{std::span<const In>(ids), first, ends};
  Wrapped<Out> out{std::vector<Out>(wrapped_size(documents, wrapping)), Numbers(ends.size()), 0};
  out.wrong = wrap_ids(documents, wrapping, std::span<Out>(out.ids), out.lengths);
  return out;
}

TEST(WrapIds, PutsIdsAroundEachDocument) {
  const Narrow prepend{8, 9};
  const Narrow append{7};
  const auto found = wrapped<std::uint16_t>(Narrow{1, 2, 3, 4}, 0, {3, 3, 4}, {prepend, append, 9});
  EXPECT_EQ(found.ids, (std::vector<std::uint16_t>{8, 9, 1, 2, 3, 7, 8, 9, 7, 8, 9, 4, 7}));
  EXPECT_EQ(found.lengths, (Numbers{6, 3, 4}));
  EXPECT_EQ(found.wrong, -1);
}

TEST(WrapIds, BeginsWhereTheFirstDocumentDoes) {
  const auto found = wrapped<std::uint32_t>(Wide{-1, 5, 6, 7, -1}, 1, {2, 4}, {{}, {}, 4294967295});
  EXPECT_EQ(found.ids, (Narrow{5, 6, 7}));
  EXPECT_EQ(found.lengths, (Numbers{1, 2}));
  EXPECT_EQ(found.wrong, -1);
}

TEST(WrapIds, FindsTheFirstWrongId) {
  const Narrow around{1};
  EXPECT_EQ(wrapped<std::uint8_t>(Narrow{1, 256, 300}, 0, {1, 3}, {{}, {}, 255}).wrong, 1);
  EXPECT_EQ(wrapped<std::uint8_t>(Narrow{1, 255, 254}, 0, {1, 3}, {around, around, 254}).wrong, 4);
  EXPECT_EQ(wrapped<std::uint8_t>(Wide{1, 2, -1}, 0, {1, 3}, {around, {}, 255}).wrong, 4);
  EXPECT_EQ(wrapped<std::uint32_t>(Wide{0, std::int64_t{1} << 32}, 0, {2}, {{}, {}, 4294967295}).wrong, 1);
  EXPECT_EQ(wrapped<std::uint8_t>(Narrow{1}, 0, {1}, {{}, around, 0}).wrong, 0);
}

TEST(WrapIds, FindsAWrongIdFarBehindTheFirst) {
  Narrow ids(100'000);
  std::iota(ids.begin(), ids.end(), 0);
  EXPECT_EQ(wrapped<std::uint32_t>(ids, 0, {ids.size()}, {{}, {}, 98'765}).wrong, 98'766);
  EXPECT_EQ(wrapped<std::uint32_t>(ids, 0, {ids.size()}, {{}, {}, 98'765}).ids, ids);
}

TEST(WrapIds, RefusesDocumentsOutsideOfTheIds) {
  EXPECT_THROW(wrapped<std::uint8_t>(Narrow{1, 2}, 0, {3}, {{}, {}, 9}), Error);
  EXPECT_THROW(wrapped<std::uint8_t>(Narrow{1, 2}, 0, {2, 1}, {{}, {}, 9}), Error);
  EXPECT_THROW(wrapped<std::uint8_t>(Narrow{1, 2}, 2, {1}, {{}, {}, 9}), Error);
  EXPECT_THROW(wrapped<std::uint8_t>(Narrow{1, 2}, ~std::uint64_t{0}, {0}, {{}, {}, 9}), Error);
}

TEST(WrapIds, RefusesALastIdBeyondTheType) {
  EXPECT_THROW(wrapped<std::uint8_t>(Narrow{1}, 0, {1}, {{}, {}, 256}), Error);
  EXPECT_THROW(wrapped<std::uint16_t>(Narrow{1}, 0, {1}, {{}, {}, 65536}), Error);
}

}  // namespace
}  // namespace penstock::text
