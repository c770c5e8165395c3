#include "shuffle/mixture.h"

#include "core/base/error.h"
#include "core/job/cursor.h"
#include "order_checks.h"
#include "shuffle/blocks.h"
#include "shuffle/bucketed.h"
#include "shuffle/sequential.h"
#include "shuffle/uniform.h"
#include "tests/native/message_of.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>

namespace penstock::shuffle {
namespace {

constexpr std::uint64_t kNone = Order::kNever;
using Weights = std::vector<std::uint64_t>;

MixtureSpec spec(std::vector<std::string> names, std::vector<MixtureStageSpec> stages, Weights caps = {}) {
  MixtureSpec made;
  made.names = std::move(names);
  made.caps = caps.empty() ? Weights(made.names.size(), kNone) : std::move(caps);
  made.stages = std::move(stages);
  made.window = 64;
  return made;
}

MixtureStageSpec from(std::uint64_t position, Weights weights, std::uint64_t window = 0) {
  return {{position, false}, window, std::move(weights)};
}
MixtureStageSpec from_tokens(std::uint64_t tokens, Weights weights, std::uint64_t window = 0) {
  return {{tokens, true}, window, std::move(weights)};
}

std::vector<MixtureSlot> slots(const MixturePlan& plan, std::uint64_t first, std::uint64_t stride, std::size_t count) {
  std::vector<MixtureSlot> out(count);
  plan.find(first, stride, out);
  return out;
}

Weights counts(const MixturePlan& plan, std::uint64_t position) {
  Weights out(plan.spec().names.size());
  plan.count(position, out);
  return out;
}

/// What is found with a stride is what is found one by one, from some positions on.
void expect_strides(const MixturePlan& plan, const std::vector<MixtureSlot>& all) {
  for (const std::uint64_t stride : {2U, 5U, 64U, 301U, 700U}) {
    for (const std::uint64_t first : {0U, 3U, 100U}) {
      const std::vector<MixtureSlot> some = slots(plan, first, stride, (all.size() - 1 - first) / stride + 1);
      for (std::size_t i = 0; i < some.size(); ++i) ASSERT_EQ(some[i], all[first + i * stride]);
    }
  }
}

/// Every unit of each source once, in order, and each stage's shares within the bound; whatever the stages.
void expect_right(const MixturePlan& plan, std::uint64_t positions) {
  Weights given(plan.spec().names.size());
  Weights at_begin = given;
  std::size_t stage = 0;
  const std::vector<MixtureSlot> all = slots(plan, 0, 1, positions);
  const std::vector<MixtureStage> stages = plan.stages();
  for (std::uint64_t p = 0; p < positions; ++p) {
    if (stage + 1 < stages.size() && stages[stage + 1].begin == p) {
      ++stage;
      at_begin = given;
      ASSERT_EQ(stages[stage].given, given);
      ASSERT_EQ(plan.stage_at(p - 1), stage - 1);
    }
    if (p % 101 == 0) {
      ASSERT_EQ(plan.stage_at(p), stage);
    }
    if (p % 13 == 0) {
      ASSERT_EQ(counts(plan, p), given);
    }
    ASSERT_EQ(all[p].ordinal, given[all[p].source]);
    ++given[all[p].source];
    const MixtureStage& now = stages[stage];
    std::uint64_t sum = 0;
    for (const std::uint64_t weight : now.weights) sum += weight;
    for (std::size_t i = 0; i < now.sources.size(); ++i) {
      const std::uint32_t s = now.sources[i];
      const double part = static_cast<double>(now.weights[i]) / static_cast<double>(sum);
      const double share = static_cast<double>(p + 1 - now.begin) * part;
      ASSERT_LT(std::abs(static_cast<double>(given[s] - at_begin[s]) - share),
                1 + static_cast<double>(now.sources.size()) * part);
    }
  }
  expect_strides(plan, all);
}

TEST(MixturePlan, StagesBeginAnywhereAndNothingIsRepeatedOrLost) {
  const std::vector<Weights> weights{{3, 1, 0}, {1, 1, 1}, {0, 2, 5}, {200'003, 17, 5'000}, {1, 0, 0}};
  for (const std::uint64_t length : {1U, 2U, 3U, 7U, 50U, 333U}) {
    std::vector<MixtureStageSpec> stages;
    for (std::size_t i = 0; i < weights.size(); ++i) stages.push_back(from(i * length, weights[i]));
    const MixturePlan plan(spec({"web", "code", "books"}, stages));
    EXPECT_EQ(plan.end(), kNone);
    EXPECT_EQ(plan.stages().size(), weights.size());
    expect_right(plan, 5 * length + 1000);
  }
}

TEST(MixturePlan, ASourceThatHasGivenItsCapLeavesAtOnceAndTheOthersShareItsPart) {
  const MixturePlan plan(spec({"web", "code", "books"}, {from(0, {4, 2, 1}), from(900, {1, 1, 1})}, {kNone, 100, 60}));
  ASSERT_EQ(plan.stages().size(), 4U);  // code ends, books end, and the stage after finds web alone
  EXPECT_TRUE(plan.stages()[1].implied);
  EXPECT_TRUE(plan.stages()[2].implied);
  EXPECT_FALSE(plan.stages()[3].implied);
  EXPECT_EQ(plan.stages()[1].weights, (Weights{1, 4}));  // by name: books, web
  EXPECT_EQ(plan.stages()[2].weights, Weights{1});
  EXPECT_EQ(plan.stages()[3].begin, 900U);
  expect_right(plan, 1500);
  for (std::size_t i : {1U, 2U}) {
    const MixtureStage stage = plan.stages()[i];
    const std::uint32_t ended = i == 1 ? 1 : 2;
    EXPECT_EQ(slots(plan, stage.begin - 1, 1, 1)[0].source, ended) << "at once";
    EXPECT_EQ(stage.given[ended], plan.spec().caps[ended]);
  }
}

TEST(MixturePlan, ManyCapsAndWeightsEndTogether) {
  std::vector<std::string> names;
  Weights weights;
  Weights caps;
  for (std::uint64_t s = 0; s < 30; ++s) {
    names.push_back("s" + std::to_string(s));
    weights.push_back(s * s * s % 17 + 1);
    caps.push_back(20 * weights.back());  // all at about the same place
  }
  for (const std::uint64_t factor : {1U, 100'003U}) {
    Weights scaled = weights;
    scaled[0] = scaled[0] * factor + (factor > 1 ? 1 : 0);
    for (std::size_t s = 1; s < scaled.size(); ++s) scaled[s] *= factor;
    const MixturePlan plan(spec(names, {from(0, scaled)}, caps));
    std::uint64_t sum = 0;
    for (const std::uint64_t cap : caps) sum += cap;
    EXPECT_EQ(plan.end(), sum);
    expect_right(plan, sum);
    EXPECT_EQ(counts(plan, sum), caps);
    EXPECT_THROW((void)slots(plan, sum, 1, 1), Error);
    EXPECT_THROW((void)slots(plan, sum - 2, 1, 3), Error);
  }
}

TEST(MixturePlan, TokensArePositionsRoundedUpAlsoBeyond64Bits) {
  MixtureSpec made = spec({"a", "b"}, {from(0, {1, 1}), from_tokens(6401, {1, 2})});
  made.end = MixturePlace{12'800, true};
  const MixturePlan plan(made);
  EXPECT_EQ(plan.stages()[1].begin, 101U);
  EXPECT_EQ(plan.stages()[1].begin_tokens, 6464U);
  EXPECT_EQ(plan.end(), 200U);
  EXPECT_EQ(plan.tokens_before(150), 9600U);
  EXPECT_EQ(plan.position_of({6465, true}), 102U);
  constexpr std::uint64_t kFar = std::uint64_t{1} << 60;
  made = spec({"a", "b"}, {from(0, {1, 1}), from(kFar, {1, 2}), from(kFar + 100, {1, 2}, 16)}, {kNone, kFar});
  made.group = 4;
  const MixturePlan far(made);
  EXPECT_TRUE(far.stages()[1].begin_tokens == Wide{kFar} * 64);
  EXPECT_TRUE(far.tokens_before(kFar + 50) == Wide{kFar + 50} * 64);
  EXPECT_TRUE(far.tokens_before(kFar + 110) == Wide{kFar + 100} * 64 + 160);
  EXPECT_EQ(far.position_of({kNone, true}), kNone / 64 + 1) << "tokens that come before";
}

TEST(MixturePlan, ACapThatNoPositionComesToIsNone) {
  const MixturePlan plan(spec({"a", "b"}, {from(0, {1, 1}, 16)}, {kNone, std::uint64_t{1} << 61}));
  EXPECT_EQ(plan.stages().size(), 1U);
  EXPECT_EQ(plan.end(), kNone);
  const Weights given = counts(plan, std::uint64_t{1} << 62);
  EXPECT_EQ(given[0] + given[1], std::uint64_t{1} << 62);
}

void expect_refused(const MixtureSpec& made, const std::string& words) {
  testing::expect_error([&] { const MixturePlan plan(made); }, ErrorKind::InvalidArgument, words);
}

TEST(MixturePlan, RefusesWhatCannotBe) {
  const std::vector<std::string> names{"web", "code"};
  expect_refused(spec(names, {from(0, {0, 0})}), "stage 0: all weights are 0");
  expect_refused(spec(names, {from(5, {1, 1})}), "stage 0: it begins at 5");
  expect_refused(spec(names, {from(0, {1, 1}), from(0, {1, 2})}), "stage 1: it begins at 0");
  expect_refused(spec(names, {from(0, {1, 1}), from(9, {1, 1}), from(9, {1, 2})}), "stage 2: it begins at 9");
  expect_refused(spec(names, {from(0, {1, 1}), from(50, {1, 0})}, {20, 60}), "stage 1: its sources (web) have given");
  expect_refused(spec(names, {from(0, {1, 1}), from(50, {1, 0})}, {20, 10}),
                 "stage 0: its sources have given their caps by position 30");
  expect_refused(spec(names, {from(0, {1, 1}, 48)}), "stage 0: window=48: it must divide");
  expect_refused(spec(names, {from(0, {(std::uint64_t{1} << 62) - 1, 2})}), "beyond 2^62");
  MixtureSpec early = spec(names, {from(0, {1, 1}), from(50, {1, 0})});
  early.end = MixturePlace{50, false};
  expect_refused(early, "end: the run ends at position 50");
  MixtureSpec documents = spec(names, {from(0, {1, 1}), from_tokens(50, {1, 0})});
  documents.window = 0;
  expect_refused(documents, "documents have no window");
}

// Windows of 16, 32 and 64 in stages: each part of each unit once, shares at whole groups, no stage inside a group.
TEST(MixturePlan, AStageOfShorterWindowsGivesEachPartOfAUnitOnce) {
  MixtureSpec made =
      spec({"a", "b"}, {from(0, {2, 1}, 16), from(900, {1, 1}, 32), from(2001, {1, 3}), from(2500, {5, 1}, 16)},
           {kNone, 1200});
  made.group = 32;
  const MixturePlan plan(made);
  const auto stages = plan.stages();
  EXPECT_EQ(stages[1].begin, 32U * 4 * 8);  // whole groups of 128
  EXPECT_EQ(plan.windows(), (std::vector<std::uint64_t>{64, 16, 32}));
  constexpr std::uint64_t kCount = 9000;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::set<std::pair<std::uint64_t, std::uint32_t>>> parts;
  Weights given(2);
  for (std::uint64_t p = 0; p < kCount; ++p) {
    const MixtureSlot slot = slots(plan, p, 1, 1)[0];
    ASSERT_LT(slot.part, plan.parts_at(p));
    ASSERT_TRUE((parts[{slot.source, slot.ordinal}].insert({plan.parts_at(p), slot.part}).second)) << p;
    if (p % 61 == 0) {
      ASSERT_EQ(counts(plan, p), given) << p;
    }
    ++given[slot.source];
  }
  expect_strides(plan, slots(plan, 0, 1, kCount));
  std::uint64_t whole = 0;
  std::uint64_t cut = 0;
  for (const auto& [unit, seen] : parts) {
    const std::uint64_t of = seen.begin()->first;
    for (const auto& part : seen) ASSERT_EQ(part.first, of) << "a unit in two windows";
    seen.size() == of ? ++whole : ++cut;
  }
  EXPECT_LE(cut, made.group) << "only in the last group that was begun";
  EXPECT_GT(whole, 1000U);
  EXPECT_EQ(plan.window_end(0), stages[1].begin);
  EXPECT_EQ(plan.window_end(1 << 30), kNone);
}

std::shared_ptr<const MixturePlan> shared(MixtureSpec made) {
  return std::make_shared<const MixturePlan>(std::move(made));
}

Mixture uniform_mixture(const std::shared_ptr<const MixturePlan>& plan, const Weights& sizes, std::uint64_t seed) {
  std::vector<std::shared_ptr<const Order>> orders;
  for (std::size_t s = 0; s < sizes.size(); ++s) {
    orders.push_back(std::make_shared<Uniform>(sizes[s], Mixture::source_seed(seed, plan->spec().names[s])));
  }
  return {plan, std::move(orders), seed};
}

/// Of two sources in blocks.
Mixture block_mixture(MixtureSpec made) {
  const BlocksShape shape{4, 64, 1};
  return {
      shared(std::move(made)), {std::make_shared<Blocks>(4000, 1, shape), std::make_shared<Blocks>(4000, 2, shape)}, 0};
}

TEST(Mixture, FetchesArePlannedAheadButNotForEver) {
  const Mixture even = block_mixture(spec({"a", "b"}, {from(0, {1, 1})}));
  const Mixture uneven = block_mixture(spec({"a", "b"}, {from(0, {1000, 1})}));
  MixtureSpec made = spec({"a", "b"}, {from(0, {1, 1}, 16), from(1500, {1, 1})});
  made.group = 40;  // units, of which fetches are no multiple; a group's parts are of all its fetches
  const Mixture shorter = block_mixture(made);
  for (const Mixture* order : {&even, &uneven, &shorter}) {
    std::uint64_t cut = 0;
    std::uint64_t stretches = 0;
    std::set<std::pair<std::uint32_t, std::uint64_t>> before;
    for (std::uint64_t position = 0; position < 3000; ++stretches) {
      const std::uint64_t end = order->fetch_end(position);
      ASSERT_GT(end, position);
      ASSERT_LE(end - position, order == &shorter && position < 1600 ? 640U : 128U);
      ASSERT_TRUE(order != &shorter || position >= 1600 || end % 160 == 0) << "whole groups";
      std::set<std::pair<std::uint32_t, std::uint64_t>> now;
      for (const Pick& pick : picks(*order, position, 1, end - position)) now.insert({pick.source, pick.fetch});
      for (const auto& fetch : now) cut += before.contains(fetch) ? 1 : 0;
      before.merge(now);
      position = end;
    }
    EXPECT_LT(cut, 2 * stretches);
  }
}

// Orders take positions that rise: those of a group's parts are in any order, and some more than once.
TEST(Mixture, EverySourceGivesTheEpochsOfItsOrderWhateverTheStagesAndWindows) {
  std::vector<std::uint32_t> lengths(300);
  for (std::uint32_t i = 0; i < lengths.size(); ++i) lengths[i] = i * 37 % 101;
  const std::vector<std::shared_ptr<const Order>> each{
      std::make_shared<Uniform>(300, 1), std::make_shared<Sequential>(300),
      std::make_shared<Blocks>(300, 1, BlocksShape{4, 32, 2}), std::make_shared<Bucketed>(lengths, 1, 64, 8)};
  MixtureSpec windows = spec({"a", "b", "c"}, {from(0, {2, 1, 1}, 16), from(700, {1, 1, 0}), from(1000, {1, 3, 1}, 8)});
  windows.group = 32;
  const MixtureSpec stages = spec({"a", "b", "c"}, {from(0, {1, 1, 1}), from(77, {5, 0, 1}), from(400, {1, 2, 9})});
  for (const MixtureSpec& made : {windows, stages}) {
    for (const auto& order : each) {
      const auto plan = shared(made);
      const std::vector<std::shared_ptr<const Order>> orders{order, std::make_shared<Uniform>(77, 5),
                                                             std::make_shared<Uniform>(7, 5)};
      const Mixture mixture(plan, orders, 0);
      const std::vector<Pick> all = picks(mixture, 0, 1, 6000);
      const std::vector<MixtureSlot> found = slots(*plan, 0, 1, all.size());
      for (std::uint64_t p = 0; p < all.size(); ++p) {
        const Pick unit = picks(*orders[found[p].source], found[p].ordinal, 1, 1)[0];
        ASSERT_EQ(all[p].index, unit.index * plan->parts_at(p) + found[p].part) << p;
        ASSERT_EQ(all[p].source % 3, found[p].source) << p;  // each window of a source has a number of its own
        ASSERT_EQ(all[p].epoch, unit.epoch);
        ASSERT_TRUE(found[p].source != 0 || all[p].fetch == unit.fetch);
        ASSERT_EQ(all[p], picks(mixture, p, 1, 1)[0]) << p;
      }
      for (const std::uint64_t stride : {2U, 5U, 301U}) {
        const std::vector<Pick> some = picks(mixture, 3, stride, (all.size() - 4) / stride + 1);
        for (std::size_t i = 0; i < some.size(); ++i) ASSERT_EQ(some[i], all[3 + i * stride]);
      }
    }
  }
}

TEST(Mixture, IdentityIsOfTheStagesThatBeganAndOfTheirSources) {
  const auto plan =
      shared(spec({"web", "code", "new"}, {from(0, {2, 4, 0}), from(500, {1, 0, 1})}, {kNone, 100, kNone}));
  const Mixture order = uniform_mixture(plan, {1000, 1000, 1000}, 9);
  using nlohmann::json;
  const json first = json::parse(order.identity(0));
  EXPECT_EQ(first["stages"], json::parse(R"([{"begin":0,"sources":["code","web"],"weights":[2,1]}])"));
  EXPECT_EQ(first["orders"]["web"], json::parse(Uniform(1000, Mixture::source_seed(9, "web")).identity(kNone)));
  EXPECT_FALSE(first["orders"].contains("new"));
  EXPECT_EQ(order.place(501), "stage 2");
  EXPECT_EQ(json::parse(order.identity(500))["stages"].size(), 2U) << "code has ended before";
  EXPECT_TRUE(json::parse(order.identity(501))["orders"].contains("new"));
  const auto later = shared(spec({"web", "code"}, {from(0, {1, 2})}));
  EXPECT_EQ(uniform_mixture(later, {1000, 1000}, 9).identity(1), order.identity(1))
      << "sources, stages and caps to come, and other numbers of one ratio, are no difference";
}

// What stands at a position never changes.
TEST(Mixture, GoldenValues) {
  MixtureSpec made =
      spec({"web", "code", "books"}, {from(0, {3, 1, 2}), from(100, {1'000'003, 20'011, 77}), from(300, {1, 1, 1}, 16)},
           {kNone, 90, kNone});
  made.group = 8;
  const Mixture order = uniform_mixture(shared(made), {1009, 500, 30}, 12345);
  std::string text;
  for (const std::uint64_t p : {0U, 1U, 2U, 3U, 99U, 100U, 101U, 250U, 299U, 300U, 301U, 340U, 5000U, 1'000'000'000U}) {
    const Pick pick = picks(order, p, 1, 1)[0];
    text += fmt::format("{}.{}.{} ", pick.source, pick.epoch, pick.index);
  }
  EXPECT_EQ(text,
            "0.0.325 0.0.616 1.0.20 2.0.25 0.0.364 0.0.98 0.0.196 0.0.461 0.0.1006 5.1.75 3.0.590 4.0.1946 5.19.34 "
            "3.123885.2278 ");
}

}  // namespace
}  // namespace penstock::shuffle
