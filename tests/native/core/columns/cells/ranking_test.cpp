// The largest keys, against std::stable_sort.
#include "core/columns/cells/ranking.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>

namespace penstock::cells {
namespace {

std::vector<std::uint32_t> model(const std::vector<double>& keys, std::uint64_t most) {
  std::vector<std::uint32_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return keys[a] > keys[b]; });
  order.resize(std::min<std::uint64_t>(order.size(), most));
  return order;
}

TEST(Ranking, IsAStableSortDownwardsWhateverTheKeys) {
  std::mt19937_64 random(5);
  const auto uniform = [&] { return std::uniform_real_distribution<double>(0, 1)(random); };
  const std::vector<std::function<double(std::size_t)>> kinds{
      [&](std::size_t) { return uniform(); }, [&](std::size_t) { return std::exp(600 * uniform() - 300); },
      [&](std::size_t) { return static_cast<double>(random() % 5); },
      [&](std::size_t) { return static_cast<double>(random() % 5) / (1 + static_cast<double>(random() % 3)); },
      [](std::size_t) { return 7.0; },
      // Apart in their last bits alone, but for one: leading bits say nothing, and the order is the opposite one.
      [](std::size_t i) { return i == 0 ? 1e9 : 1 + static_cast<double>(i) * 0x1p-52; },
      [](std::size_t i) { return i % 2 == 0 ? 0.0 : std::numeric_limits<double>::infinity(); },
      [](std::size_t i) { return static_cast<double>(i) * 5e-324; }};
  Ranking ranking;
  for (const auto& kind : kinds) {
    for (const std::size_t count : {0U, 1U, 2U, 3U, 17U, 255U, 2000U, 5000U}) {
      std::vector<double> keys;
      for (std::size_t i = 0; i < count; ++i) keys.push_back(kind(i));
      for (const std::uint64_t most : {0U, 1U, 2U, 100U, 2048U, 10'000U}) {
        const auto found = ranking.largest(keys, most);
        ASSERT_EQ(std::vector<std::uint32_t>(found.begin(), found.end()), model(keys, most)) << count << " " << most;
      }
    }
  }
}

}  // namespace
}  // namespace penstock::cells
