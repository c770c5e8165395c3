#include "shuffle/blocks.h"

#include "core/base/error.h"
#include "order_checks.h"

#include <gtest/gtest.h>

#include <map>

namespace penstock::shuffle {
namespace {

// And it never changes: all of it was once that of tests/python/permutation_reference.py.
TEST(Blocks, IsABijectionForEverySizeBlockFetchAndLanes) {
  std::uint64_t all = 0;
  for (std::uint64_t n = 1; n <= 150; n += n < 40 ? 1 : 11) {
    for (const std::uint64_t block : {1, 2, 3, 7, 16, 200}) {
      for (const std::uint64_t times : {1, 2, 5, 100}) {
        for (const std::uint64_t lanes : {1, 2, 3, 4, 7, 16, 200}) {
          const Blocks order(n, 3, {block, block * times, lanes});
          for (std::uint64_t epoch = 0; epoch < 3; ++epoch) expect_whole_epoch(order, epoch);
          if (::testing::Test::HasFatalFailure()) return;
          for (const std::uint64_t index : indices(order, 0, 1, 3 * n)) all = (all ^ index) * 0x100000001b3;
        }
      }
    }
  }
  for (const BlocksShape shape : {BlocksShape{64, 1024, 1}, {64, 1024, 8}, {1000, 5000, 3}, {1, 1, 64}, {1, 1000, 6}}) {
    for (const std::uint64_t n : {65'536, 65'537, 99'991}) expect_whole_epoch(Blocks(n, 11, shape), 1);
  }
  EXPECT_EQ(all, 9227600400698143316U);
}

TEST(Blocks, GivesTheGoldenVectors) {
  const nlohmann::json cases = golden();
  for (const auto& one : cases.at("blocks")) {
    const Blocks order(one.at("n"), one.at("seed"), {one.at("block"), one.at("fetch"), one.at("lanes")});
    for (const auto& pair : one.at("pairs")) {
      EXPECT_EQ(picks(order, pair.at(0), 1, 1)[0].index, pair.at(1).get<std::uint64_t>()) << one.dump();
    }
  }
}

TEST(Blocks, WorksAtTheLargestSize) {
  const std::uint64_t n = std::uint64_t{1} << 52;
  const Blocks order(n, 1, {1024, 1 << 20, 64});
  std::vector<std::uint64_t> read = indices(order, n - 5000, 1, 10'000);  // across the epochs' border
  for (const std::uint64_t index : read) ASSERT_LT(index, n);
  std::sort(read.begin(), read.begin() + 5000);
  EXPECT_EQ(std::adjacent_find(read.begin(), read.begin() + 5000), read.begin() + 5000);
}

TEST(Blocks, FetchesAreWholeBlocksOfOneLane) {
  const Blocks order(10'000, 7, {16, 64, 4});
  std::map<std::uint64_t, std::vector<std::uint64_t>> fetches;
  const std::vector<Pick> all = picks(order, 0, 1, 5120);
  for (std::size_t position = 0; position < all.size(); ++position) {
    fetches[all[position].fetch].push_back(all[position].index);
    EXPECT_EQ(all[position].fetch, all[position % 4 + position / 256 * 256].fetch) << "of its lane";
  }
  EXPECT_EQ(fetches.size(), 80U);
  for (auto& [number, members] : fetches) {
    EXPECT_EQ(members.size(), 64U);
    std::sort(members.begin(), members.end());
    std::size_t breaks = 0;
    for (std::size_t i = 1; i < members.size(); ++i) breaks += members[i] != members[i - 1] + 1 ? 1 : 0;
    EXPECT_LE(breaks, 4U);  // four blocks of neighbours; one may be cut by the ring's turn
  }
}

TEST(Blocks, SaysWhereFetchesEndAndRefusesWhatCannotBe) {
  EXPECT_EQ(Blocks(1000, 7, {4, 20, 3}).fetch_end(3), 60U);
  EXPECT_EQ(Blocks(1000, 7, {4, 20, 3}).fetch_end(1990), 2000U);
  EXPECT_EQ(Blocks(50, 7, {4, 20, 3}).fetch_end(0), 50U);
  EXPECT_EQ(Blocks(50, 7, {1, UINT64_MAX, UINT64_MAX}).fetch_end(51), 100U);
  for (const BlocksShape shape : {BlocksShape{0, 1, 1}, {1, 0, 1}, {1, 1, 0}, {4, 10, 1}}) {
    EXPECT_THROW(Blocks(10, 1, shape), Error) << shape.block << " " << shape.fetch;
  }
}

}  // namespace
}  // namespace penstock::shuffle
