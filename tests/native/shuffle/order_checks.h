// What the tests of all orders share: picks as plain vectors, the promises that hold for each, and frozen values.
#pragma once

#include "core/job/order.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <set>
#include <vector>

namespace penstock::shuffle {

inline std::vector<Pick> picks(const Order& order, std::uint64_t first, std::uint64_t stride, std::size_t count) {
  std::vector<Pick> out(count);
  order.pick(first, stride, out);
  return out;
}

inline std::vector<std::uint64_t> indices(const Order& order, std::uint64_t first, std::uint64_t stride,
                                          std::size_t count) {
  std::vector<std::uint64_t> out;
  for (const Pick& pick : picks(order, first, stride, count)) out.push_back(pick.index);
  return out;
}

/// Epoch `epoch` of the order holds every observation exactly once.
inline void expect_whole_epoch(const Order& order, std::uint64_t epoch) {
  const std::uint64_t n = order.epoch_size();
  std::vector<bool> seen(n);
  for (const Pick& pick : picks(order, epoch * n, 1, n)) {
    ASSERT_LT(pick.index, n) << order.identity(Order::kNever);
    ASSERT_FALSE(seen[pick.index]) << order.identity(Order::kNever) << " gives " << pick.index << " twice";
    ASSERT_EQ(pick.epoch, epoch);
    ASSERT_EQ(pick.source, 0U);
    seen[pick.index] = true;
  }
}

/// A pick of many equals picks of one each, whatever the first position and the stride.
inline void expect_strides_agree(const Order& order) {
  const std::uint64_t n = order.epoch_size();
  const std::vector<std::uint64_t> strides = {1, 2, 3, 8, n - n / 3, n + 1};
  for (const std::uint64_t stride : strides) {
    const std::uint64_t first = n / 2;
    const std::vector<Pick> together = picks(order, first, stride, 700);
    for (std::size_t i = 0; i < together.size(); ++i) {
      ASSERT_EQ(together[i], picks(order, first + i * stride, 1, 1)[0])
          << order.identity(Order::kNever) << ", stride " << stride << ", position " << first + i * stride;
    }
  }
}

/// The fetches that are met before fetch_end() do not go on after it, and those after it were not met before.
inline void expect_fetches_end(const Order& order, std::uint64_t positions) {
  std::set<std::uint64_t> before;
  std::uint64_t end = order.fetch_end(0);
  const std::vector<Pick> all = picks(order, 0, 1, positions);
  std::set<std::uint64_t> now;
  for (std::uint64_t position = 0; position < positions; ++position) {
    if (position == end) {
      before.merge(now);
      now.clear();
      end = order.fetch_end(position);
    }
    ASSERT_GT(order.fetch_end(position), position);
    ASSERT_EQ(order.fetch_end(position), end);
    ASSERT_FALSE(before.contains(all[position].fetch)) << order.identity(Order::kNever) << " at " << position;
    now.insert(all[position].fetch);
  }
}

/// The frozen values of tests/golden/permutation.json. They come from tests/python/permutation_reference.py.
inline nlohmann::json golden() {
  std::ifstream file(PENSTOCK_GOLDEN_FOLDER "/permutation.json");
  return nlohmann::json::parse(file);
}

}  // namespace penstock::shuffle
