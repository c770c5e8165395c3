#include "shuffle/grown.h"

#include "core/base/error.h"
#include "core/job/job.h"
#include "order_checks.h"
#include "shuffle/blocks.h"
#include "shuffle/sequential.h"
#include "shuffle/uniform.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>

namespace penstock::shuffle {
namespace {

using Make = std::function<std::shared_ptr<const Order>(std::uint64_t)>;

// Epochs 0 and 1 of 10 observations, 2 and 3 of 17, and from epoch 4 on 40.
constexpr std::uint64_t kSecond = 20;
constexpr std::uint64_t kThird = 54;

Grown grown(const Make& make) {
  return Grown({{0, make(10), R"({"n":10})"}, {kSecond, make(17), R"({"n":17})"}, {kThird, make(40), R"({"n":40})"}});
}

TEST(GrownTest, EachEpochIsThatOfTheOrderOverItsShardsAndFetchesEndWithThePart) {
  const Make makes[] = {[](std::uint64_t n) { return std::make_shared<Sequential>(n, 7, 4); },
                        [](std::uint64_t n) {
                          return std::make_shared<Blocks>(n, 7, BlocksShape{3, 3, 4});
                        }};
  for (const Make& make : makes) {
    const Grown order = grown(make);
    std::uint64_t position = 0;
    std::uint64_t epoch = 0;
    for (const std::uint64_t n : {10, 10, 17, 17, 40, 40}) {
      EXPECT_EQ(picks(order, position, 1, n), picks(*make(n), epoch++ * n, 1, n)) << order.identity(Order::kNever);
      position += n;
    }
    for (position = 0; position < kThird; ++position) {
      EXPECT_LE(order.fetch_end(position), position < kSecond ? kSecond : kThird);
    }
  }
}

TEST(GrownTest, TheIdentityHasThePartsThatBeginBeforeThePosition) {
  const Grown order = grown([](std::uint64_t n) { return std::make_shared<Uniform>(n, 7); });
  for (const auto& [position, parts] : std::vector<std::pair<std::uint64_t, std::size_t>>{
           {0, 1}, {kSecond, 1}, {kSecond + 1, 2}, {kThird, 2}, {kThird + 1, 3}, {Order::kNever, 3}}) {
    const auto json = nlohmann::json::parse(order.identity(position));
    EXPECT_EQ(json["stages"].size(), parts) << position;
    EXPECT_EQ(json["stages"][0]["source"]["n"], 10);
  }
}

TEST(GrownTest, WhatCannotBeIsRefused) {
  const auto of = [](std::uint64_t n) { return std::make_shared<Uniform>(n, 0); };
  EXPECT_THROW(Grown({}), Error);
  EXPECT_THROW(Grown({{5, of(10), "{}"}}), Error);
  EXPECT_THROW(Grown({{0, of(10), "{}"}, {15, of(20), "{}"}}), Error);
  EXPECT_THROW(Grown({{0, of(10), "{}"}, {0, of(20), "{}"}}), Error);
  EXPECT_THROW(Grown({{0, of(10), "{}"}, {20, of(9), "{}"}}), Error);
  EXPECT_THROW(Grown({{0, of(1), "{}"}, {std::uint64_t{1} << 62, of(std::uint64_t{1} << 50), "{}"}}), Error);
}

TEST(GrownTest, AJobCountsItsEpochsAndBatchesEndWithThemWhateverTheirLength) {
  const std::vector<SourceIdentity> sources{{"aa", 3, 40, R"({"kind":"windows"})", ""}};
  const auto order = std::make_shared<Grown>(grown([](std::uint64_t n) { return std::make_shared<Uniform>(n, 7); }));
  for (const bool drops : {false, true}) {
    CursorOptions options;
    options.epochs = 6;
    options.schedule = {{0, 4}};
    EXPECT_EQ(Job(order, sources, options).cursor().run_end(), 134U);
    options.per_epoch = true;
    options.tail = drops ? Tail::Drop : Tail::Pad;
    const Job run(order, sources, options);
    std::uint64_t begin = 0;
    std::uint64_t steps = 0;
    std::uint64_t epoch = 0;
    for (const std::uint64_t n : {10U, 10U, 17U, 17U, 40U, 40U}) {
      const std::uint64_t batches = drops ? n / 4 : (n + 3) / 4;
      EXPECT_EQ(run.cursor().length(begin), batches);
      EXPECT_EQ(run.cursor().length(begin + n - 1), batches);
      EXPECT_EQ(run.cursor().steps_before(begin), steps);
      EXPECT_EQ(run.epoch(begin + n - 1), epoch++);
      std::uint64_t position = begin;
      for (std::uint64_t i = 0; i < batches; ++i) {
        const auto plan = run.plan(position, {0, 1});
        ASSERT_TRUE(plan);
        EXPECT_EQ(plan->position, position);
        position = plan->end;
      }
      begin += n;
      steps += batches;
      EXPECT_EQ(position, begin) << "the last batch ends with its epoch";
    }
    EXPECT_FALSE(run.plan(begin, {0, 1}));
    EXPECT_EQ(run.cursor().steps_before(begin), steps);
  }
}

}  // namespace
}  // namespace penstock::shuffle
