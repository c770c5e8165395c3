#include "shuffle/sequential.h"

#include "core/base/error.h"
#include "order_checks.h"

#include <gtest/gtest.h>

namespace penstock::shuffle {
namespace {

TEST(Sequential, GivesTheObservationsAsTheyStand) {
  const std::vector<Pick> all = picks(Sequential(3), 1, 1, 6);
  const std::vector<Pick> expected = {{1, 0, 0, 0}, {2, 0, 0, 0}, {0, 1, 0, 1},
                                      {1, 1, 0, 1}, {2, 1, 0, 1}, {0, 2, 0, 2}};
  EXPECT_EQ(all, expected);
}

TEST(Sequential, SaysWhatDecidesIt) {
  const Sequential order(1000);
  EXPECT_EQ(order.identity(7), R"({"name":"sequential","size":1000})");
  EXPECT_EQ(order.epoch_size(), 1000U);
  EXPECT_EQ(order.end(0), Order::kNever);
  EXPECT_EQ(Sequential(10).fetch_end(3), 10U);
  EXPECT_EQ(Sequential(3000).fetch_end(1023), 1024U);
  EXPECT_EQ(Sequential(3000).fetch_end(3000 + 1024), 3000U + 2048U);
  EXPECT_EQ(Sequential(3000).fetch_end(2999), 3000U);
}

TEST(Sequential, WithAFetchNeighboursAreMixedWithinItAndNowhereElse) {
  for (const std::uint64_t n : {1U, 50U, 1000U, 3001U}) {
    for (const std::uint64_t fetch : {1U, 7U, 64U, 1024U, 5000U}) {
      const Sequential order(n, 9, fetch);
      expect_whole_epoch(order, 3);
      expect_fetches_end(order, 4 * n);
      const std::vector<Pick> all = picks(order, 0, 1, n);
      for (std::uint64_t p = 0; p < n; ++p) ASSERT_EQ(all[p].index / fetch, p / fetch);
    }
  }
  const Sequential order(1000, 9, 100);
  EXPECT_NE(indices(order, 0, 1, 1000), indices(order, 1000, 1, 1000));
  EXPECT_NE(indices(order, 0, 1, 1000), indices(Sequential(1000, 8, 100), 0, 1, 1000));
  EXPECT_EQ(order.identity(7), R"({"algorithm":1,"fetch":100,"name":"sequential in fetches","seed":9,"size":1000})");
}

TEST(Sequential, RefusesWhatCannotBe) {
  EXPECT_THROW(Sequential(10, 1, 0), Error);
  EXPECT_THROW(Sequential(0), Error);
  EXPECT_THROW(Sequential((std::uint64_t{1} << 52) + 1), Error);
}

}  // namespace
}  // namespace penstock::shuffle
