// Balance: its definition, by brute force; every observation is one rank's; ranks get as many as by turns.
#include "core/job/balance.h"

#include "core/base/mix64.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

namespace penstock {
namespace {

using Numbers = std::vector<std::uint64_t>;

Numbers some_costs(std::uint64_t count, std::uint64_t seed, std::uint64_t most) {
  Numbers costs;
  for (std::uint64_t i = 0; i < count; ++i) costs.push_back(mix64(seed * 1'000'003 + i) % most);
  return costs;
}

Numbers rows_of(const Numbers& costs, const Share& share, std::uint64_t rows, std::uint64_t micro_batches = 1) {
  Numbers out;
  balance_rows(costs, {share.rank, share.world_size, micro_batches}, rows, out);
  return out;
}

// From the definition: each in turn to the taker with least of those that have room.
std::vector<Numbers> by_definition(Numbers numbers, const Numbers& costs, const Numbers& rooms) {
  std::sort(numbers.begin(), numbers.end());
  std::stable_sort(numbers.begin(), numbers.end(), [&](auto a, auto b) { return costs[a] > costs[b]; });
  std::vector<Numbers> given(rooms.size());
  Numbers sums(rooms.size());
  for (const std::uint64_t number : numbers) {
    std::size_t best = rooms.size();
    for (std::size_t i = 0; i < rooms.size(); ++i) {
      if (given[i].size() < rooms[i] && (best == rooms.size() || sums[i] < sums[best])) best = i;
    }
    given[best].push_back(number);
    sums[best] += costs[number];
  }
  return given;
}

TEST(BalanceTest, HeaviestFirstToTheRankWithLeastAndThenIntoParts) {
  for (const std::uint64_t ranks : {1, 2, 3, 8, 64}) {
    for (const std::uint64_t rows : {1, 2, 6}) {
      for (const std::uint64_t missing : {std::uint64_t{0}, std::uint64_t{1}, ranks, ranks * rows - 1}) {
        if (missing >= ranks * rows) continue;
        for (const std::uint64_t most : {1, 3, 1'000'000}) {
          const Numbers costs = some_costs(ranks * rows - missing, ranks + rows, most);
          Numbers all(costs.size());
          std::iota(all.begin(), all.end(), std::uint64_t{0});
          Numbers by_turns(ranks);
          for (std::uint64_t i = 0; i < costs.size(); ++i) ++by_turns[i % ranks];
          const auto wanted = by_definition(all, costs, by_turns);
          for (const std::uint64_t micro : {std::uint64_t{1}, rows}) {
            Numbers seen;
            for (std::uint64_t rank = 0; rank < ranks; ++rank) {
              const Numbers got = rows_of(costs, {rank, ranks}, rows, micro);
              Numbers rooms(micro);
              for (std::uint64_t i = 0; i < got.size(); ++i) ++rooms[i / (rows / micro)];
              Numbers expected;
              for (Numbers& part : by_definition(wanted[rank], costs, rooms)) {
                std::sort(part.begin(), part.end());
                expected.insert(expected.end(), part.begin(), part.end());
              }
              ASSERT_EQ(got, expected) << ranks << " ranks, " << rows << " rows, rank " << rank;
              seen.insert(seen.end(), got.begin(), got.end());
            }
            std::sort(seen.begin(), seen.end());
            ASSERT_EQ(seen, all) << "each once";
          }
        }
      }
    }
  }
}

TEST(BalanceTest, PartsOfOneRowAreByCost) {
  EXPECT_EQ(rows_of({1, 9, 5, 7}, {0, 1}, 4, 4), (Numbers{1, 3, 2, 0}));
  EXPECT_EQ(rows_of({1, 9, 5, 7}, {0, 1}, 4, 2), (Numbers{0, 1, 2, 3})) << "9 + 1, 7 + 5; in a part by position";
  EXPECT_EQ(rows_of({1, 9, 5}, {0, 1}, 4, 2), (Numbers{0, 1, 2})) << "the padded part is the last one";
}

TEST(BalanceTest, SumsBeyondAWordAreRight) {
  const std::uint64_t most = UINT64_MAX;
  EXPECT_EQ(rows_of({most, most, most, most, 1, 2}, {0, 2}, 3), (Numbers{0, 2, 5}));
  EXPECT_EQ(rows_of({most, most, most, most, 1, 2}, {1, 2}, 3), (Numbers{1, 3, 4}));
}

}  // namespace
}  // namespace penstock
