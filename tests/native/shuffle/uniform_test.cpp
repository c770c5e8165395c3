#include "shuffle/uniform.h"

#include "core/base/error.h"
#include "order_checks.h"
#include "shuffle/permutation.h"

#include <gtest/gtest.h>

namespace penstock::shuffle {
namespace {

TEST(Uniform, EpochEIsThePermutationOfSeedAndE) {
  const Uniform order(1000, 5);
  for (std::uint32_t epoch = 0; epoch < 4; ++epoch) {
    const Permutation permutation(1000, 5, epoch);
    const std::vector<Pick> all = picks(order, epoch * 1000ULL, 1, 1000);
    for (std::uint64_t i = 0; i < 1000; ++i) EXPECT_EQ(all[i], (Pick{permutation(i), epoch * 1000 + i, 0, epoch}));
  }
}

TEST(Uniform, SaysWhatDecidesIt) {
  const Uniform order(1000, UINT64_MAX);
  EXPECT_EQ(order.identity(0), R"({"algorithm":1,"name":"uniform","seed":18446744073709551615,"size":1000})");
  EXPECT_EQ(order.epoch_size(), 1000U);
  EXPECT_EQ(order.end(12), Order::kNever);
  EXPECT_EQ(order.fetch_end(12), 13U);
}

TEST(Uniform, RefusesWhatCannotBe) {
  EXPECT_THROW(Uniform(0, 1), Error);
  EXPECT_THROW(Uniform((std::uint64_t{1} << 52) + 1, 1), Error);
  EXPECT_THROW(picks(Uniform(10, 1), 0, 0, 3), Error);
  EXPECT_EQ(picks(Uniform(1, 1), UINT32_MAX, 1, 1)[0], (Pick{0, UINT32_MAX, 0, UINT32_MAX}));
  EXPECT_THROW(picks(Uniform(1, 1), std::uint64_t{1} << 32, 1, 1), Error);
}

}  // namespace
}  // namespace penstock::shuffle
