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
  expect_whole_epoch(Sequential(1000), 3);
}

TEST(Sequential, AnyStrideGivesWhatSinglePositionsGive) {
  for (const std::uint64_t n : {1, 50, 1000}) expect_strides_agree(Sequential(n));
}

TEST(Sequential, FetchesEndWhereItSays) {
  for (const std::uint64_t n : {1, 50, 1024, 3000}) expect_fetches_end(Sequential(n), 7000);
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

TEST(Sequential, RefusesWhatCannotBe) {
  EXPECT_THROW(Sequential(0), Error);
  EXPECT_THROW(Sequential((std::uint64_t{1} << 52) + 1), Error);
}

}  // namespace
}  // namespace penstock::shuffle
