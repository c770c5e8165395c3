// Orders of a user's own: arrays of indices, and functions that are asked for blocks of positions.
#include "shuffle/listed.h"

#include "core/base/error.h"
#include "order_checks.h"
#include "shuffle/asked.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>

namespace penstock::shuffle {
namespace {

template <typename T>
IndexList list_over(const std::vector<T>& values, std::ptrdiff_t step = 1) {
  IndexList list;
  list.data = step < 0 ? &values.back() : values.data();
  list.is_wide = sizeof(T) == 8;
  list.step = step;
  list.size = (values.size() - 1) / static_cast<std::size_t>(std::abs(step)) + 1;
  return list;
}

std::string digest_over(const IndexList& list) {
  std::vector<DigestBytes> parts;
  for (std::uint64_t at = 0; at < list.size; at += IndexList::kPart) {
    parts.push_back(summarize(list, at, std::min(list.size, at + IndexList::kPart)).digest);
  }
  return hex_of(digest_of_parts(list.size, parts));
}

TEST(Listed, GivesTheArrayEpochAfterEpochInWhateverFormItLies) {
  const std::vector<std::uint64_t> wide = {5, 0, 5, 9, 1};
  const std::vector<std::uint32_t> narrow(wide.begin(), wide.end());
  const std::vector<std::uint64_t> backwards(wide.rbegin(), wide.rend());
  std::vector<std::uint32_t> spread(13, 77);
  for (std::size_t i = 0; i < wide.size(); ++i) spread[3 * i] = narrow[i];
  const std::string digest = digest_over(list_over(wide));
  for (const IndexList& list : {list_over(wide), list_over(narrow), list_over(backwards, -1), list_over(spread, 3)}) {
    EXPECT_EQ(digest_over(list), digest);
    const Listed order(list, digest, 1, 1);
    EXPECT_EQ(order.epoch_size(), 5U);
    EXPECT_EQ(indices(order, 0, 1, 12), (std::vector<std::uint64_t>{5, 0, 5, 9, 1, 5, 0, 5, 9, 1, 5, 0}));
    EXPECT_EQ(picks(order, 11, 1, 1)[0], (Pick{0, 11, 0, 2}));
    EXPECT_EQ(order.fetch_end(11), 12U);
    EXPECT_EQ(order.identity(0), R"({"digest":")" + digest + R"(","length":5,"name":"custom"})");
  }
}

TEST(Listed, ADigestIsOfTheIndicesTheirOrderAndTheirNumber) {
  const std::vector<std::uint64_t> some = {1, 2, 3};
  const std::string digest = digest_over(list_over(some));
  for (const std::vector<std::uint64_t>& other :
       {std::vector<std::uint64_t>{1, 3, 2}, {1, 2, 4}, {1, 2, 3, 0}, {1, 2}}) {
    EXPECT_NE(digest_over(list_over(other)), digest);
  }
  EXPECT_EQ(digest, "2101273a29cef3243043a239d20d1b55");  // for good: states hold it
}

TEST(Listed, AnIndexInAnyPartChangesTheDigestAndTheLargestIsFound) {
  std::vector<std::uint32_t> values(2 * IndexList::kPart + 5);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint32_t>(i % 1000);
  const IndexList list = list_over(values);
  const std::string digest = digest_over(list);
  for (const std::uint64_t at : {std::uint64_t{0}, std::uint64_t{2047}, IndexList::kPart, 2 * IndexList::kPart + 4}) {
    const std::uint32_t before = values[at];
    values[at] = 4'000'000'000;
    EXPECT_NE(digest_over(list), digest);
    const IndexSummary found = summarize(list, 0, list.size);
    EXPECT_EQ(found.largest, 4'000'000'000U);
    EXPECT_EQ(found.largest_at, at);
    values[at] = before;
  }
  EXPECT_EQ(digest_over(list), digest);
  EXPECT_EQ(summarize(list, 1500, 1510).largest_at, 1509U);
}

TEST(Listed, LooksWhetherItsFileIsTheSameBeforeEachPick) {
  const std::vector<std::uint32_t> values = {1, 2, 3};
  IndexList list = list_over(values);
  bool is_same = true;
  list.check_same = [&] {
    if (!is_same) raise(ErrorKind::Corruption, "changed");
  };
  const Listed order(list, "", 1, 1);
  EXPECT_EQ(indices(order, 1, 1, 2), (std::vector<std::uint64_t>{2, 3}));
  is_same = false;
  EXPECT_THROW(picks(order, 0, 1, 1), Error);
}

TEST(Listed, RefusesFetchesAndLanesOfNone) {
  const std::vector<std::uint32_t> values = {1, 2, 3};
  EXPECT_THROW(Listed(list_over(values), "", 0, 1), Error);
  EXPECT_THROW(Listed(list_over(values), "", 1, 0), Error);
}

// Positions of 150,000 in blocks of 65,536, which are asked for once each in a run of positions.
TEST(Asked, AsksForBlocksOfAnEpoch) {
  constexpr std::uint64_t kLength = 150'000;
  std::atomic<std::uint64_t> asked{0};
  const auto ask = [&](std::uint32_t epoch, std::uint64_t number) {
    ++asked;
    EXPECT_LT(number, 3U);
    std::vector<std::uint64_t> block(Asked::positions_in(kLength, number));
    for (std::uint64_t i = 0; i < block.size(); ++i) block[i] = epoch * kLength + number * Asked::kBlock + i;
    return std::make_shared<const std::vector<std::uint64_t>>(std::move(block));
  };
  const Asked order({"f", "1", kLength}, ask);
  EXPECT_FALSE(order.may_wait());
  EXPECT_TRUE(Asked({"f", "1", kLength, 1, 1, true}, ask).may_wait());
  const std::vector<Pick> all = picks(order, 0, 1, 2 * kLength + 7);
  EXPECT_EQ(asked, 7U);
  for (std::uint64_t p = 0; p < all.size(); ++p) {
    ASSERT_EQ(all[p], (Pick{p, p, 0, static_cast<std::uint32_t>(p / kLength)}));
  }
  const std::vector<Pick> some = picks(order, 65'530, 40'000, 6);
  for (std::uint64_t i = 0; i < some.size(); ++i) EXPECT_EQ(some[i], all[65'530 + 40'000 * i]);
}

TEST(Asked, ItsIdentityIsItsNameAndVersion) {
  const auto ask = [](std::uint32_t, std::uint64_t) { return IndexBlock(); };
  EXPECT_EQ(Asked({"a \"ramp\" ü", "2", 70'000, 4, 2}, ask).identity(0),
            R"({"function":"a \"ramp\" ü","length":70000,"name":"custom","version":"2"})");
  EXPECT_THROW(Asked({"f", "1", 0}, ask), Error);
  EXPECT_THROW(Asked({"f", "1", 5, 0, 1}, ask), Error);
}

}  // namespace
}  // namespace penstock::shuffle
