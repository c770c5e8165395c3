// What every order promises, of whatever size.
#include "core/job/order.h"

#include "core/base/error.h"
#include "order_checks.h"
#include "shuffle/asked.h"
#include "shuffle/balanced.h"
#include "shuffle/blocks.h"
#include "shuffle/bucketed.h"
#include "shuffle/grown.h"
#include "shuffle/independent.h"
#include "shuffle/listed.h"
#include "shuffle/permutation.h"
#include "shuffle/sequential.h"
#include "shuffle/uniform.h"
#include "shuffle/weighted.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <thread>

namespace penstock::shuffle {
namespace {

using Made = std::shared_ptr<const Order>;

struct Kind {
  const char* name;
  std::function<Made(std::uint64_t size, std::uint64_t seed)> make;
  bool has_whole_epochs = true;  // each observation once
  bool has_seed = true;
};

Made make_bucketed(std::uint64_t size, std::uint64_t seed) {
  std::vector<std::uint32_t> lengths(size);
  for (std::uint64_t i = 0; i < size; ++i) lengths[i] = static_cast<std::uint32_t>(i * 7919 % 50);
  return std::make_shared<Bucketed>(lengths, seed, 100, 7);
}

Made make_evenly(std::uint64_t size, std::uint64_t seed) {
  std::vector<std::int32_t> labels(size + 2);
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int32_t>(i % 5);
  return std::make_shared<Balanced>(ClassMembers(labels, 5), seed, size, 4, 3);
}

Made make_weighted(std::uint64_t size, std::uint64_t seed, Draws how) {
  const std::vector<double> weights{3, 0, 1, 1, 0.5, 8, 0, 2.5};
  return std::make_shared<Weighted>(WeightTable(weights), std::make_shared<Blocks>(size, seed, BlocksShape{2, 6, 3}),
                                    seed, true, how);
}

Made make_independent(std::uint64_t size, std::uint64_t seed) {
  return std::make_shared<Independent>(WeightTable(std::vector<double>{3, 0, 1, 8, 0, 2.5}), seed, size, 4, 3);
}

Made make_grown(std::uint64_t size, std::uint64_t seed) {
  const auto of = [&](std::uint64_t n) { return std::make_shared<Blocks>(n, seed, BlocksShape{2, 6, 1}); };
  return std::make_shared<Grown>(
      std::vector<Grown::Part>{{0, of(size), R"({"n":1})"}, {2 * size, of(size + 7), R"({"n":2})"}});
}

// Other indices for each size; the seed decides nothing.
std::shared_ptr<const std::vector<std::uint32_t>> made_indices(std::uint64_t size) {
  std::vector<std::uint32_t> indices(size);
  for (std::uint64_t i = 0; i < size; ++i) indices[i] = static_cast<std::uint32_t>((i * 7919 + size) % (size / 2 + 1));
  return std::make_shared<const std::vector<std::uint32_t>>(std::move(indices));
}

Made make_listed(std::uint64_t size, std::uint64_t) {
  IndexList list;
  list.owner = made_indices(size);
  list.data = static_cast<const std::vector<std::uint32_t>*>(list.owner.get())->data();
  list.size = size;
  const std::vector<DigestBytes> parts =
      size == 0 ? std::vector<DigestBytes>{} : std::vector{summarize(list, 0, size).digest};
  return std::make_shared<Listed>(list, hex_of(digest_of_parts(size, parts)), 7, 3);
}

Made make_asked(std::uint64_t size, std::uint64_t) {
  const auto ask = [size](std::uint32_t epoch, std::uint64_t number) {
    std::vector<std::uint64_t> block(Asked::positions_in(size, number));
    for (std::uint64_t i = 0; i < block.size(); ++i) block[i] = (i * 31 + epoch * 7 + number) % size;
    return std::make_shared<const std::vector<std::uint64_t>>(std::move(block));
  };
  return std::make_shared<Asked>(Asked::Spec{"mine", "2", size, 5, 2}, ask);
}

template <std::uint64_t kBlock, std::uint64_t kFetch, std::uint64_t kLanes>
Made make_blocks(std::uint64_t size, std::uint64_t seed) {
  return std::make_shared<Blocks>(size, seed, BlocksShape{kBlock, kFetch, kLanes});
}

class EveryOrder : public ::testing::TestWithParam<Kind> {
 protected:
  static constexpr std::uint64_t kSizes[] = {1, 2, 3, 50, 64, 65, 1000, 1003, 4097};
};

INSTANTIATE_TEST_SUITE_P(
    , EveryOrder,
    ::testing::Values(
        Kind{"Uniform", [](auto n, auto seed) { return std::make_shared<Uniform>(n, seed); }},
        Kind{"Sequential", [](auto n, auto) { return std::make_shared<Sequential>(n); }, true, false},
        Kind{"SequentialInFetches", [](auto n, auto seed) { return std::make_shared<Sequential>(n, seed, 64); }},
        Kind{"BlocksOfOne", make_blocks<1, 1, 1>}, Kind{"Blocks", make_blocks<4, 32, 6>},
        Kind{"LargeBlocks", make_blocks<10, 500, 3>}, Kind{"BlocksOfManyLanes", make_blocks<7, 7, 1000>},
        Kind{"Bucketed", make_bucketed}, Kind{"Balanced", make_evenly, false},
        Kind{"Weighted", [](auto n, auto seed) { return make_weighted(n, seed, Draws::Rounded); }, false},
        Kind{"Systematic", [](auto n, auto seed) { return make_weighted(n, seed, Draws::Systematic); }, false},
        Kind{"Independent", make_independent, false}, Kind{"Grown", make_grown, false},
        Kind{"Listed", make_listed, false, false}, Kind{"Asked", make_asked, false, false}),
    [](const auto& info) { return info.param.name; });

TEST_P(EveryOrder, GivesEveryObservationOnceAnEpoch) {
  if (!GetParam().has_whole_epochs) return;
  for (const std::uint64_t n : kSizes) {
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) expect_whole_epoch(*GetParam().make(n, 5), epoch);
  }
}

TEST_P(EveryOrder, AnyStrideAndAnyPositionsGiveWhatSinglePositionsGive) {
  for (const std::uint64_t n : {1, 50, 1000}) {
    const Made order = GetParam().make(n, 9);
    expect_strides_agree(*order);
    std::vector<std::uint64_t> positions;
    for (std::uint64_t p = 2; p < 150; p += p < 90 ? 1 + p % 5 : 1) positions.push_back(p);  // where a part ends, too
    std::vector<Pick> out(positions.size());
    order->pick_at(positions, out);
    for (std::size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], picks(*order, positions[i], 1, 1)[0]);
  }
}

TEST_P(EveryOrder, FetchesEndWhereItSays) {
  for (const std::uint64_t n : {1, 50, 1000, 1003, 3000}) expect_fetches_end(*GetParam().make(n, 7), 3 * n + 1);
}

TEST_P(EveryOrder, EveryThreadSeesTheSame) {
  const Made order = GetParam().make(1'001, 3);
  const std::vector<Pick> all = picks(*order, 0, 1, 3'000);
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const std::vector<Pick> some = picks(*order, t, 4, 700);
      for (std::size_t i = 0; i < some.size(); ++i) EXPECT_EQ(some[i], all[t + 4 * i]);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(EveryOrder, ItsIdentityIsCanonicalAndOfWhatDecidesIt) {
  const Made order = GetParam().make(100, 7);
  const std::string text = order->identity(Order::kNever);
  EXPECT_EQ(nlohmann::json::parse(text).dump(), text);
  EXPECT_EQ(GetParam().make(100, 7)->identity(Order::kNever), text);
  EXPECT_EQ(indices(*GetParam().make(100, 7), 0, 1, 300), indices(*order, 0, 1, 300));
  EXPECT_NE(GetParam().make(101, 7)->identity(Order::kNever), text);
  const Made other = GetParam().make(100, 8);
  EXPECT_EQ(other->identity(Order::kNever) != text, GetParam().has_seed);
  EXPECT_EQ(indices(*other, 0, 1, 300) != indices(*order, 0, 1, 300), GetParam().has_seed);
  EXPECT_EQ(order->end(12), Order::kNever);
}

// Epoch 1 of a seed is not epoch 0 of the next one either.
TEST_P(EveryOrder, EpochsOfNeighbouringSeedsAreAllDifferent) {
  if (!GetParam().has_seed) return;
  std::set<std::vector<std::uint64_t>> seen;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const Made order = GetParam().make(1003, seed);
    for (std::uint64_t epoch = 0; epoch < 2; ++epoch) seen.insert(indices(*order, epoch * 1003, 1, 1003));
  }
  EXPECT_EQ(seen.size(), 8U);
}

TEST_P(EveryOrder, RefusesAStrideAndASizeOfZero) {
  EXPECT_THROW(picks(*GetParam().make(10, 1), 0, 0, 3), Error);
  EXPECT_THROW(GetParam().make(0, 1), Error);
}

TEST(Uniform, EpochEIsThePermutationOfSeedAndE) {
  const Uniform order(1000, UINT64_MAX);
  for (std::uint32_t epoch = 0; epoch < 4; ++epoch) {
    const Permutation permutation(1000, UINT64_MAX, epoch);
    const std::vector<Pick> all = picks(order, epoch * 1000ULL, 1, 1000);
    for (std::uint64_t i = 0; i < 1000; ++i) EXPECT_EQ(all[i], (Pick{permutation(i), epoch * 1000 + i, 0, epoch}));
  }
  EXPECT_EQ(order.identity(0), R"({"algorithm":1,"name":"uniform","seed":18446744073709551615,"size":1000})");
  EXPECT_EQ(picks(Uniform(1, 1), UINT32_MAX, 1, 1)[0], (Pick{0, UINT32_MAX, 0, UINT32_MAX}));
  EXPECT_THROW(picks(Uniform(1, 1), std::uint64_t{1} << 32, 1, 1), Error);
  EXPECT_THROW(Uniform((std::uint64_t{1} << 52) + 1, 1), Error);
}

TEST(Sequential, GivesTheObservationsAsTheyStandOrMixedWithinTheirFetch) {
  const std::vector<Pick> expected = {{1, 0, 0, 0}, {2, 0, 0, 0}, {0, 1, 0, 1},
                                      {1, 1, 0, 1}, {2, 1, 0, 1}, {0, 2, 0, 2}};
  EXPECT_EQ(picks(Sequential(3), 1, 1, 6), expected);
  for (const std::uint64_t n : {1U, 50U, 1000U, 3001U}) {
    for (const std::uint64_t fetch : {1U, 7U, 64U, 1024U, 5000U}) {
      const Sequential order(n, 9, fetch);
      expect_whole_epoch(order, 3);
      expect_fetches_end(order, 4 * n);
      const std::vector<Pick> all = picks(order, 0, 1, n);
      for (std::uint64_t p = 0; p < n; ++p) ASSERT_EQ(all[p].index / fetch, p / fetch);
    }
  }
  EXPECT_EQ(Sequential(10).fetch_end(3), 10U);
  EXPECT_EQ(Sequential(3000).fetch_end(3000 + 1024), 3000U + 2048U);
  EXPECT_THROW(Sequential(10, 1, 0), Error);
}

}  // namespace
}  // namespace penstock::shuffle
