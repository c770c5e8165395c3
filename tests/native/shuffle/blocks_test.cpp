#include "shuffle/blocks.h"

#include "core/base/error.h"
#include "golden.h"
#include "order_checks.h"

#include <gtest/gtest.h>

#include <set>

namespace penstock::shuffle {
namespace {

using Values = std::vector<std::uint64_t>;

/// Lengths of the maximal runs of adjacent observations, the first following the last one of the dataset.
Values run_lengths(Values observations, std::uint64_t n) {
  std::sort(observations.begin(), observations.end());
  Values lengths;
  for (std::size_t i = 0; i < observations.size(); ++i) {
    if (i > 0 && observations[i] == observations[i - 1] + 1) {
      ++lengths.back();
    } else {
      lengths.push_back(1);
    }
  }
  if (lengths.size() > 1 && observations.front() == 0 && observations.back() == n - 1) {
    lengths.front() += lengths.back();
    lengths.pop_back();
  }
  return lengths;
}

TEST(Blocks, IsABijectionForEverySizeBlockFetchAndLanes) {
  for (std::uint64_t n = 1; n <= 150; n += n < 40 ? 1 : 11) {
    for (const std::uint64_t block : {1, 2, 3, 7, 16, 200}) {
      for (const std::uint64_t times : {1, 2, 5, 100}) {
        for (const std::uint64_t lanes : {1, 2, 3, 4, 7, 16, 200}) {
          const Blocks order(n, 3, {block, block * times, lanes});
          for (std::uint64_t epoch = 0; epoch < 3; ++epoch) expect_whole_epoch(order, epoch);
          if (::testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(Blocks, IsABijectionAtLargerSizesToo) {
  for (const BlocksShape shape : {BlocksShape{64, 1024, 1}, {64, 1024, 8}, {1000, 5000, 3}, {1, 1, 64}, {1, 1000, 6}}) {
    for (const std::uint64_t n : {65'536, 65'537, 99'991}) expect_whole_epoch(Blocks(n, 11, shape), 1);
  }
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

TEST(Blocks, AnyStrideGivesWhatSinglePositionsGive) {
  for (const std::uint64_t n : {1, 50, 1000}) {
    for (const BlocksShape shape : {BlocksShape{1, 1, 1}, {4, 32, 1}, {4, 32, 6}, {10, 500, 3}, {7, 7, 1000}}) {
      expect_strides_agree(Blocks(n, 9, shape));
    }
  }
}

// Rank r of R reads positions p with p mod R = r. Where R divides the lanes, what it reads in one fetch of each of its
// lanes is whole blocks: runs of a multiple of `block`. Only its last fetches have ragged ends.
void expect_ranks_read_whole_blocks(std::uint64_t n, const BlocksShape& shape, std::uint64_t ranks,
                                    std::uint64_t epoch) {
  const Blocks order(n, 21, shape);
  const std::uint64_t lanes_of_rank = shape.lanes / ranks;
  const std::uint64_t window = shape.fetch * lanes_of_rank;
  for (std::uint64_t rank = 0; rank < ranks; ++rank) {
    std::uint64_t position = epoch * n;
    while (position % ranks != rank) ++position;
    while (position < (epoch + 1) * n) {
      const std::uint64_t left = ((epoch + 1) * n - 1 - position) / ranks + 1;
      const std::uint64_t count = std::min(window, left);
      const Values lengths = run_lengths(indices(order, position, ranks, count), n);
      const auto broken =
          std::count_if(lengths.begin(), lengths.end(), [&](std::uint64_t run) { return run % shape.block != 0; });
      // A ragged piece lies in two blocks at most, and joins or splits no others.
      const std::uint64_t allowed = left <= window + lanes_of_rank ? 2 * lanes_of_rank : 0;
      ASSERT_LE(static_cast<std::uint64_t>(broken), allowed)
          << order.identity(0) << ", rank " << rank << " of " << ranks;
      ASSERT_LE(lengths.size(), count / shape.block + 2 * lanes_of_rank);
      position += count * ranks;
    }
  }
}

TEST(Blocks, RanksThatDivideTheLanesReadWholeBlocks) {
  for (const std::uint64_t n : {10'000, 10'007, 4'099, 65'536}) {
    for (const std::uint64_t lanes : {1, 2, 6, 12}) {
      for (const BlocksShape shape : {BlocksShape{10, 40, lanes}, {16, 16, lanes}, {7, 70, lanes}}) {
        for (std::uint64_t ranks = 1; ranks <= lanes; ++ranks) {
          if (lanes % ranks != 0) continue;
          for (std::uint64_t epoch = 0; epoch < 2; ++epoch) expect_ranks_read_whole_blocks(n, shape, ranks, epoch);
          if (::testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(Blocks, AFetchOfALaneIsThatManyOfItsConsecutivePositions) {
  const BlocksShape shape{8, 32, 4};
  const Blocks order(8 * 32 * 4 * 5, 2, shape);  // nothing is ragged
  std::set<std::uint64_t> starts;
  for (std::uint64_t lane = 0; lane < 4; ++lane) {
    for (std::uint64_t fetch = 0; fetch < 40; ++fetch) {
      const Values read = indices(order, lane + fetch * 32 * 4, 4, 32);
      for (const std::uint64_t run : run_lengths(read, order.epoch_size())) EXPECT_EQ(run % 8, 0U);
      EXPECT_FALSE(std::is_sorted(read.begin(), read.end())) << "a fetch is mixed";
    }
  }
}

TEST(Blocks, FetchesAreMixedEachInItsOwnWay) {
  const Blocks order(20 * 100, 2, {20, 20, 2});
  std::set<Values> patterns;
  for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
    for (std::uint64_t lane = 0; lane < 2; ++lane) {
      for (std::uint64_t fetch = 0; fetch < 50; ++fetch) {
        Values read = indices(order, epoch * 2000 + lane + fetch * 40, 2, 20);
        const std::uint64_t first = *std::min_element(read.begin(), read.end());
        const std::uint64_t last = *std::max_element(read.begin(), read.end());
        if (last - first != 19) continue;  // the block across the dataset's end
        for (std::uint64_t& index : read) index -= first;
        EXPECT_TRUE(patterns.insert(read).second) << "lane " << lane << ", fetch " << fetch << ", epoch " << epoch;
      }
    }
  }
  EXPECT_GE(patterns.size(), 196U);
}

TEST(Blocks, EpochsAndSeedsGiveOtherOrders) {
  std::set<Values> seen;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const Blocks order(1003, seed, {10, 100, 3});
    for (std::uint64_t epoch = 0; epoch < 10; ++epoch) {
      EXPECT_TRUE(seen.insert(indices(order, epoch * 1003, 1, 1003)).second) << seed << ", " << epoch;
    }
  }
}

// How far from uniform, over epochs, what stands at one position is: chi-square over the observations in standard
// deviations.
double position_bias(const BlocksShape& shape, std::uint64_t n, std::uint64_t position, int epochs) {
  const Blocks order(n, 4, shape);
  std::vector<double> counts(n);
  for (const std::uint64_t index : indices(order, position, n, epochs)) counts[index] += 1;
  const double expected = static_cast<double>(epochs) / static_cast<double>(n);
  double chi = 0;
  for (const double count : counts) chi += (count - expected) * (count - expected) / expected;
  const double freedom = static_cast<double>(n - 1);
  return (chi - freedom) / std::sqrt(2 * freedom);
}

TEST(Blocks, NoPositionFavoursAnObservation) {
  for (const BlocksShape shape : {BlocksShape{5, 10, 1}, {5, 10, 3}, {30, 30, 2}, {64, 64, 1}, {4, 8, 50}}) {
    for (const std::uint64_t n : {23, 32}) {
      for (const std::uint64_t position : {std::uint64_t{0}, n / 2, n - 1}) {
        EXPECT_LT(position_bias(shape, n, position, 20'000), 6.0)
            << "block " << shape.block << ", lanes " << shape.lanes << ", n = " << n << ", position " << position;
      }
    }
  }
}

TEST(Blocks, SmallSetsWithManyLanesAreStillShuffled) {
  for (const std::uint64_t lanes : {1, 7, 80}) {
    const Values order = indices(Blocks(50, 1, {64, 128, lanes}), 0, 1, 50);
    int adjacent = 0;
    for (std::size_t i = 1; i < order.size(); ++i) adjacent += order[i] == order[i - 1] + 1 ? 1 : 0;
    EXPECT_LT(adjacent, 8) << lanes << " lanes";
  }
}

TEST(Blocks, WorksAtTheLargestSize) {
  const std::uint64_t n = std::uint64_t{1} << 52;
  const Blocks order(n, 1, {1024, 1 << 20, 64});
  Values read = indices(order, n - 5000, 1, 10'000);  // across the epochs' border
  for (const std::uint64_t index : read) ASSERT_LT(index, n);
  std::sort(read.begin(), read.begin() + 5000);
  EXPECT_EQ(std::adjacent_find(read.begin(), read.begin() + 5000), read.begin() + 5000);
}

TEST(Blocks, FetchesEndWhereItSaysAndAreWholeBlocksOfOneLane) {
  for (const std::uint64_t n : {1, 50, 1000, 1003}) {
    for (const BlocksShape shape : {BlocksShape{4, 20, 3}, {1, 1, 1}, {16, 64, 1}, {5, 1000, 2}}) {
      expect_fetches_end(Blocks(n, 7, shape), 3 * n + 1);
    }
  }
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

TEST(Blocks, SaysWhatDecidesIt) {
  const Blocks order(1000, 7, {4, 20, 3});
  EXPECT_EQ(order.identity(0),
            R"({"algorithm":1,"block":4,"fetch":20,"lanes":3,"name":"blocks","seed":7,"size":1000})");
  EXPECT_EQ(order.end(3), Order::kNever);
  EXPECT_EQ(order.fetch_end(3), 60U);
  EXPECT_EQ(order.fetch_end(1990), 2000U);
  EXPECT_EQ(Blocks(50, 7, {4, 20, 3}).fetch_end(0), 50U);
  EXPECT_EQ(Blocks(50, 7, {1, UINT64_MAX, UINT64_MAX}).fetch_end(51), 100U);
}

TEST(Blocks, RefusesWhatCannotBe) {
  EXPECT_THROW(Blocks(0, 1, {1, 1, 1}), Error);
  EXPECT_THROW(Blocks(10, 1, {0, 1, 1}), Error);
  EXPECT_THROW(Blocks(10, 1, {1, 0, 1}), Error);
  EXPECT_THROW(Blocks(10, 1, {1, 1, 0}), Error);
  EXPECT_THROW(Blocks(10, 1, {4, 10, 1}), Error);
}

}  // namespace
}  // namespace penstock::shuffle
