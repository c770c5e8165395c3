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
#include <nlohmann/json.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

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

/// Every unit of each source once, in order, and each stage's shares within the bound; whatever the stages.
void expect_right(const MixturePlan& plan, std::uint64_t positions) {
  Weights given(plan.spec().names.size());
  Weights at_begin = given;
  std::size_t stage = 0;
  const std::vector<MixtureSlot> all = slots(plan, 0, 1, positions);
  for (std::uint64_t p = 0; p < positions; ++p) {
    if (stage + 1 < plan.stages().size() && plan.stages()[stage + 1].begin == p) {
      ++stage;
      at_begin = given;
      ASSERT_EQ(plan.stages()[stage].given, given);
    }
    ASSERT_EQ(plan.stage_at(p), stage);
    if (p % 13 == 0) {
      ASSERT_EQ(counts(plan, p), given);
    }
    ASSERT_EQ(all[p].ordinal, given[all[p].source]);
    ++given[all[p].source];
    const MixtureStage& now = plan.stages()[stage];
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
  for (const std::uint64_t stride : {2U, 5U, 64U, 301U}) {
    for (const std::uint64_t first : {0U, 3U, 100U}) {
      const std::size_t count = (positions - 1 - first) / stride + 1;
      const std::vector<MixtureSlot> some = slots(plan, first, stride, count);
      for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(some[i], all[first + i * stride]);
    }
  }
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
    const MixtureStage& stage = plan.stages()[i];
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

TEST(MixturePlan, TokensArePositionsRoundedUp) {
  MixtureSpec made = spec({"a", "b"}, {from(0, {1, 1}), from_tokens(6401, {1, 2})});
  made.end = MixturePlace{12'800, true};
  const MixturePlan plan(made);
  EXPECT_EQ(plan.stages()[1].begin, 101U);
  EXPECT_EQ(plan.stages()[1].begin_tokens, 6464U);
  EXPECT_EQ(plan.end(), 200U);
  EXPECT_EQ(plan.tokens_before(150), 9600U);
  EXPECT_EQ(plan.position_of({6465, true}), 102U);
}

TEST(MixturePlan, TokensBeyond64BitsAreCounted) {
  constexpr std::uint64_t kFar = std::uint64_t{1} << 60;
  MixtureSpec made =
      spec({"a", "b"}, {from(0, {1, 1}), from(kFar, {1, 2}), from(kFar + 100, {1, 2}, 16)}, {kNone, kFar});
  made.group = 4;
  const MixturePlan plan(made);
  EXPECT_TRUE(plan.stages()[1].begin_tokens == Wide{kFar} * 64);
  EXPECT_TRUE(plan.tokens_before(kFar + 50) == Wide{kFar + 50} * 64);
  EXPECT_TRUE(plan.tokens_before(kFar + 110) == Wide{kFar + 100} * 64 + 160);
  EXPECT_EQ(plan.position_of({kNone, true}), kNone / 64 + 1) << "tokens that come before";
  // A cap that no position comes to is none.
  MixtureSpec capped = spec({"a", "b"}, {from(0, {1, 1}, 16)}, {kNone, std::uint64_t{1} << 61});
  const MixturePlan far(capped);
  EXPECT_EQ(far.stages().size(), 1U);
  EXPECT_EQ(far.end(), kNone);
  EXPECT_EQ(counts(far, std::uint64_t{1} << 62)[0] + counts(far, std::uint64_t{1} << 62)[1], std::uint64_t{1} << 62);
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
  const auto& stages = plan.stages();
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
  for (const std::uint64_t stride : {1U, 3U, 64U, 700U}) {
    const std::vector<MixtureSlot> some = slots(plan, 1, stride, (kCount - 2) / stride + 1);
    for (std::size_t i = 0; i < some.size(); ++i) ASSERT_EQ(some[i], slots(plan, 1 + i * stride, 1, 1)[0]);
  }
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

TEST(Mixture, GivesEachSourcesEpochsWhateverTheStages) {
  const Weights sizes{100, 7, 1000};
  const auto plan = shared(spec({"a", "b", "c"}, {from(0, {1, 1, 1}), from(77, {5, 0, 1}), from(400, {1, 2, 9})}));
  const Mixture order = uniform_mixture(plan, sizes, 3);
  std::vector<std::vector<Pick>> given(3);
  for (const Pick& pick : picks(order, 0, 1, 3000)) given[pick.source].push_back(pick);
  for (std::uint32_t s = 0; s < 3; ++s) {
    const Uniform alone(sizes[s], Mixture::source_seed(3, plan->spec().names[s]));
    const std::vector<Pick> wanted = picks(alone, 0, 1, given[s].size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      ASSERT_EQ(given[s][i].index, wanted[i].index);
      ASSERT_EQ(given[s][i].epoch, wanted[i].epoch);
    }
  }
  const std::vector<Pick> all = picks(order, 0, 1, 3000);
  for (const std::uint64_t stride : {2U, 3U, 8U, 300U}) {
    const std::vector<Pick> some = picks(order, 5, stride, 2990 / stride);
    for (std::size_t i = 0; i < some.size(); ++i) ASSERT_EQ(some[i], all[5 + i * stride]);
  }
  EXPECT_EQ(order.epoch_size(), kMostPosition);
  EXPECT_EQ(order.end(5), Order::kNever);
  EXPECT_EQ(order.fetch_end(5), 6U);
  EXPECT_EQ(order.place(77), "stage 1");
}

TEST(Mixture, FetchesArePlannedAheadButNotForEver) {
  std::vector<std::shared_ptr<const Order>> orders{std::make_shared<Blocks>(4000, 1, BlocksShape{4, 64, 1}),
                                                   std::make_shared<Blocks>(4000, 2, BlocksShape{4, 64, 1})};
  const Mixture even(shared(spec({"a", "b"}, {from(0, {1, 1})})), orders, 0);
  const Mixture uneven(shared(spec({"a", "b"}, {from(0, {1000, 1})})), orders, 0);
  for (const Mixture* order : {&even, &uneven}) {
    std::uint64_t cut = 0;
    std::uint64_t stretches = 0;
    std::set<std::pair<std::uint32_t, std::uint64_t>> before;
    for (std::uint64_t position = 0; position < 3000; ++stretches) {
      const std::uint64_t end = order->fetch_end(position);
      ASSERT_GT(end, position);
      ASSERT_LE(end - position, 128U);
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
TEST(Mixture, EveryOrderGoesWithShorterWindows) {
  constexpr std::uint64_t kSize = 300;
  std::vector<std::uint32_t> lengths(kSize);
  for (std::uint32_t i = 0; i < kSize; ++i) lengths[i] = i * 37 % 101;
  const std::vector<std::shared_ptr<const Order>> each{
      std::make_shared<Uniform>(kSize, 1),
      std::make_shared<Sequential>(kSize),
      std::make_shared<Blocks>(kSize, 1, BlocksShape{4, 32, 2}),
      std::make_shared<Bucketed>(lengths, 1, 64, 8),
  };
  for (const auto& order : each) {
    MixtureSpec made = spec({"a", "b"}, {from(0, {2, 1}, 16), from(700, {1, 1}), from(1000, {1, 3}, 8)});
    made.group = 32;
    const auto plan = shared(made);
    const Mixture mixture(plan, {order, std::make_shared<Uniform>(77, 5)}, 0);
    const std::vector<Pick> all = picks(mixture, 0, 1, 6000);
    for (std::uint64_t p = 0; p < all.size(); ++p) {
      const MixtureSlot slot = slots(*plan, p, 1, 1)[0];
      ASSERT_EQ(all[p], picks(mixture, p, 1, 1)[0]) << p;
      if (slot.source != 0) continue;
      const Pick unit = picks(*order, slot.ordinal, 1, 1)[0];
      ASSERT_EQ(all[p].index, unit.index * plan->parts_at(p) + slot.part) << p;
      ASSERT_EQ(all[p].epoch, unit.epoch);
      ASSERT_EQ(all[p].fetch, unit.fetch);
    }
    for (const std::uint64_t stride : {2U, 5U, 301U}) {
      const std::vector<Pick> some = picks(mixture, 3, stride, (all.size() - 4) / stride + 1);
      for (std::size_t i = 0; i < some.size(); ++i) ASSERT_EQ(some[i], all[3 + i * stride]);
    }
  }
}

// Fetches end where those of units do, whatever windows there were; and a group's parts are of all its fetches, so that
// stretches end with groups.
TEST(Mixture, FetchesOfShorterWindowsArePlannedByTheGroup) {
  std::vector<std::shared_ptr<const Order>> orders{std::make_shared<Blocks>(4000, 1, BlocksShape{4, 64, 1}),
                                                   std::make_shared<Blocks>(4000, 2, BlocksShape{4, 64, 1})};
  MixtureSpec made = spec({"a", "b"}, {from(0, {1, 1}, 16), from(1500, {1, 1})});
  made.group = 40;  // units, of which fetches are no multiple
  const auto plan = shared(made);
  const Mixture order(plan, orders, 0);
  const std::uint64_t change = plan->stages()[1].begin;
  ASSERT_EQ(change, 1600U);
  const std::vector<Pick> all = picks(order, 0, 1, 3000);
  const std::vector<MixtureSlot> units = slots(*plan, 0, 1, all.size());
  for (std::uint64_t position = 0; position < 2700; position += 7) {
    const std::uint64_t size = position < change ? 160 : 1;
    const std::uint64_t stage_end = position < change ? change : all.size();
    const auto group_end = [&](std::uint64_t p) { return (p / size + 1) * size; };
    std::uint64_t wanted = group_end(position);
    std::uint64_t rows = 0;
    for (const std::uint32_t source : {0U, 1U}) {
      std::optional<std::uint64_t> open;  // where the last unit of the source that has begun is
      for (std::uint64_t p = 0; p < group_end(position); ++p) {
        if (units[p].source == source && (!open || units[p].ordinal > units[*open].ordinal)) open = p;
      }
      if (!open) continue;
      std::uint64_t last = stage_end;
      while (units[last - 1].source != source || all[last - 1].fetch != all[*open].fetch) --last;
      if (last <= group_end(position)) continue;
      wanted = std::max(wanted, group_end(last - 1));
      rows += std::uint64_t{64} * (size == 1 ? 1 : 4);
    }
    if (rows > 0) wanted = std::min(wanted, group_end(position + rows - 1));
    ASSERT_EQ(order.fetch_end(position), wanted) << position;
  }
}

// The last group permutes what is left of it, so at its positions another end is another job.
TEST(Mixture, IdentityHasTheEndOfALastGroupThatIsShort) {
  const auto mixture = [](std::uint64_t cap, std::optional<std::uint64_t> end = std::nullopt) {
    MixtureSpec made = spec({"a", "b"}, {from(0, {2, 1}, 16)}, {cap, cap / 2});
    made.group = 32;
    if (end) made.end = MixturePlace{*end, false};
    return uniform_mixture(shared(made), {1000, 1000}, 9);
  };
  const Mixture order = mixture(60);
  ASSERT_EQ(order.epoch_size(), 90U * 4);
  const std::uint64_t group = 256;
  for (const std::uint64_t cap : {52U, 58U, 62U, 100U}) {
    const Mixture other = mixture(cap);
    const std::uint64_t both = std::min(order.epoch_size(), other.epoch_size());
    for (std::uint64_t position = 0; position <= both; ++position) {
      const bool agree = picks(order, 0, 1, position) == picks(other, 0, 1, position);
      if (order.identity(position) == other.identity(position)) {
        ASSERT_TRUE(agree) << "cap " << cap << ", position " << position;
      } else {
        ASSERT_GT(position, group);
      }
    }
    EXPECT_NE(order.identity(both), other.identity(both));
  }
  using nlohmann::json;
  EXPECT_EQ(json::parse(order.identity(group + 1))["stages"].back(),
            json::parse(R"({"begin":256,"end":360,"sources":[],"weights":[],"window":16})"));
  EXPECT_EQ(mixture(60, 256).identity(Order::kNever), order.identity(group)) << "a group that the run does not come to";
}

TEST(Mixture, IdentityIsOfTheStagesThatBeganAndOfTheirSources) {
  const auto plan =
      shared(spec({"web", "code", "new"}, {from(0, {2, 4, 0}), from(500, {1, 0, 1})}, {kNone, 100, kNone}));
  const Mixture order = uniform_mixture(plan, {1000, 1000, 1000}, 9);
  using nlohmann::json;
  const json first = json::parse(order.identity(0));
  EXPECT_EQ(first["stages"], json::parse(R"([{"begin":0,"sources":["code","web"],"weights":[2,1]}])"));
  EXPECT_FALSE(first["orders"].contains("new"));
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
