#include "shuffle/draw_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <span>
#include <utility>
#include <vector>

namespace penstock::shuffle {
namespace {

std::uint64_t drawn(const DrawTree& tree, std::uint64_t number) {
  Pick pick{number, 0, 0, 0};
  tree.draw(std::span(&pick, 1));
  return pick.index;
}

// The rule as draw_tree.h states it, by plain division, for all observations of a node that gets `count` draws.
struct Model {
  const std::vector<std::uint64_t>& weights;
  std::uint64_t draws;
  Key epoch;
  std::uint64_t total = 0;
  std::vector<std::uint64_t> counts{};

  [[nodiscard]] Wide expected(std::uint64_t begin, std::uint64_t end) const {  // times total
    Wide sum = 0;
    for (std::uint64_t i = begin; i < end; ++i) sum += Wide{weights[i]} * draws;
    return sum;
  }

  void fill(std::uint64_t begin, std::uint64_t end, std::uint64_t count) {
    if (end - begin == 1) {
      counts[begin] = count;
      return;
    }
    const std::uint64_t middle = begin + (end - begin) / 2;
    const std::uint64_t random = epoch.at(middle);
    const Wide first = expected(begin, middle);
    const Wide second = expected(middle, end);
    if (first + second < total) {  // one draw at most: by weight
      std::uint64_t at = scale64(random, static_cast<std::uint64_t>((first + second) / draws));
      for (std::uint64_t i = begin; i < end && count == 1; ++i) {
        if (at < weights[i]) counts[i] = count--;
        at -= weights[i];
      }
      return;
    }
    const Wide l = first % total;
    const Wide r = second % total;
    const bool is_up = count > (first + second) / total;
    bool first_is_up = is_up;
    if (l + r < total && is_up) {
      first_is_up = scale64(random, static_cast<std::uint64_t>(l + r)) < l;
    } else if (l + r >= total && !is_up) {
      first_is_up = scale64(random, static_cast<std::uint64_t>(2 * Wide{total} - l - r)) < total - r;
    }
    const auto of_first = static_cast<std::uint64_t>(first / total) + (first_is_up ? 1 : 0);
    fill(begin, middle, of_first);
    fill(middle, end, count - of_first);
  }
};

TEST(DrawTree, AnEpochIsTheStatedRuleAndFloorOrCeilOfEachExpectation) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 500; ++round) {
    std::vector<std::uint64_t> weights(1 + random() % 40);
    for (std::uint64_t& weight : weights) weight = random() % 5 == 0 ? 0 : random() % 1000;
    weights[random() % weights.size()] += 1;
    const std::uint64_t draws = 1 + random() % (round % 2 == 0 ? 10 : 100);
    const Key epoch = Key().absorb(random());
    const WeightTable table(std::vector<double>(weights.begin(), weights.end()));
    Model model{weights, draws, epoch, table.total(), std::vector<std::uint64_t>(weights.size())};
    model.fill(0, weights.size(), draws);

    std::vector<Pick> picks(draws);
    for (std::uint64_t i = 0; i < draws; ++i) picks[i].index = i;
    DrawTree(table, draws, epoch).draw(picks);
    std::vector<std::uint64_t> counts(weights.size());
    std::uint64_t last = 0;
    for (const Pick& pick : picks) {
      ASSERT_GE(pick.index, last);  // they ascend
      last = pick.index;
      ++counts[pick.index];
    }
    ASSERT_EQ(counts, model.counts);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const std::uint64_t expected = weights[i] * draws;
      ASSERT_GE(counts[i], expected / table.total());
      ASSERT_LE(counts[i], (expected + table.total() - 1) / table.total());
    }
  }
}

// The first draw of an observation at or after `index`, or the number of draws.
std::uint64_t first_of(const DrawTree& tree, std::uint64_t draws, std::uint64_t index) {
  std::uint64_t low = 0;
  while (low < draws) {
    const std::uint64_t middle = low + (draws - low) / 2;
    if (drawn(tree, middle) < index) {
      low = middle + 1;
    } else {
      draws = middle;
    }
  }
  return low;
}

TEST(DrawTree, TheLargestTotalsAndMostDrawsDoNotOverflow) {
  constexpr double kMost = 0x1p53 - 1;
  std::vector<double> many(511, kMost);  // integers, whose sum is just below 2^62
  many[7] = 1;
  many[8] = 0;
  for (const std::vector<double>& weights :
       {many, {kMost, 0, 1, kMost}, {0.1, 0.7, 1e-17, 0.2}, {1e300, 1, 1e300}, std::vector<double>{3}}) {
    const WeightTable table(weights);
    for (const std::uint64_t draws : {std::uint64_t{1} << 52, (std::uint64_t{1} << 52) - 12345, std::uint64_t{1}}) {
      const DrawTree tree(table, draws, Key().absorb(draws));
      std::uint64_t begin = 0;
      Expected before;
      for (std::uint64_t i = 0; i < weights.size(); ++i) {
        const std::uint64_t end = first_of(tree, draws, i + 1);
        const Expected here = table.expected(i + 1, draws);
        const Expected own = here.minus(std::exchange(before, here), table.total());
        const std::uint64_t count = end - std::exchange(begin, end);
        ASSERT_GE(count, own.whole) << i << " of " << draws;
        ASSERT_LE(count, own.whole + (own.part > 0 ? 1 : 0)) << i << " of " << draws;
      }
      EXPECT_EQ(begin, draws);
    }
  }
}

TEST(DrawTree, EpochsDiffer) {
  const WeightTable table(std::vector<double>(1000, 1));
  std::vector<std::vector<std::uint64_t>> sets;
  for (std::uint64_t epoch = 0; epoch < 400; ++epoch) {
    const DrawTree tree(table, 100, Key().absorb(epoch));
    std::vector<std::uint64_t> set;
    for (std::uint64_t i = 0; i < 100; ++i) set.push_back(drawn(tree, i));
    sets.push_back(std::move(set));
  }
  std::sort(sets.begin(), sets.end());
  EXPECT_GE(std::unique(sets.begin(), sets.end()) - sets.begin(), 390);
}

}  // namespace
}  // namespace penstock::shuffle
