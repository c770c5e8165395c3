#include "shuffle/ramp.h"

#include "core/base/error.h"
#include "shuffle/mixture_plan.h"
#include "tests/native/message_of.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace penstock::shuffle {
namespace {

using Weights = std::vector<std::uint64_t>;

double share(const Weights& weights, std::size_t source) {
  double sum = 0;
  for (const std::uint64_t weight : weights) sum += static_cast<double>(weight);
  return static_cast<double>(weights[source]) / sum;
}

TEST(Ramp, StepsHaveTheSharesOfTheirMiddlesExactly) {
  EXPECT_EQ(ramp_weights(Weights{3, 1}, Weights{1, 1}, 0, 2), (Weights{3 * 2 * 3 + 1 * 4, 1 * 2 * 3 + 1 * 4}));
  EXPECT_EQ(ramp_weights(Weights{3, 1}, Weights{1, 1}, 1, 2), (Weights{3 * 2 + 3 * 4, 1 * 2 + 3 * 4}));
  EXPECT_EQ(ramp_weights(Weights{20, 0}, Weights{0, 7}, 0, 1), (Weights{1, 1}));
}

TEST(Ramp, EachStepIsNearTheLineWhateverTheWeights) {
  std::mt19937_64 random(1);
  for (int trial = 0; trial < 200; ++trial) {
    const std::size_t sources = 1 + random() % 9;
    Weights from(sources);
    Weights to(sources);
    const unsigned bits = 1 + random() % 58;
    for (std::size_t s = 0; s < sources; ++s) {
      from[s] = random() % 3 == 0 ? 0 : random() >> (64 - bits);
      to[s] = random() % 3 == 0 ? 0 : random() >> (64 - bits);
    }
    from[random() % sources] |= 1;
    to[random() % sources] |= 1;
    const std::uint64_t steps = 1 + random() % kMostRampSteps;
    for (std::uint64_t step = 0; step < steps; step += 1 + steps / 7) {
      const Weights weights = ramp_weights(from, to, step, steps);
      const double past = static_cast<double>(2 * step + 1) / static_cast<double>(2 * steps);
      std::uint64_t sum = 0;
      for (std::size_t s = 0; s < sources; ++s) {
        ASSERT_LT(weights[s], std::uint64_t{1} << 62);
        sum += weights[s];
        ASSERT_NEAR(share(weights, s), (1 - past) * share(from, s) + past * share(to, s), 1e-13);
      }
      ASSERT_LT(sum, std::uint64_t{1} << 62);
    }
  }
}

MixtureSpec ramp_spec(std::vector<MixtureStageSpec> stages, Weights caps = {}) {
  MixtureSpec made;
  made.names = {"web", "code", "books"};
  made.caps = caps.empty() ? Weights(3, Order::kNever) : std::move(caps);
  made.stages = std::move(stages);
  made.window = 64;
  return made;
}

MixtureStageSpec ramped(std::uint64_t at, Weights weights, std::uint64_t ramp, std::uint64_t window = 0) {
  return {{at, false}, window, std::move(weights), MixturePlace{ramp, false}};
}

std::vector<MixtureSlot> slots_of(const MixturePlan& plan, std::uint64_t count) {
  std::vector<MixtureSlot> out(count);
  plan.find(0, 1, out);
  return out;
}

/// A plan in which each step of a ramp is set.
std::shared_ptr<const MixturePlan> step_by_step(const MixtureSpec& spec, const MixturePlan& plan) {
  MixtureSpec plain = spec;
  for (MixtureStageSpec& stage : plain.stages) stage.ramp.reset();
  std::vector<Steering::Entry> entries;
  for (const MixtureCourse& course : plan.courses().list()) {
    const UnitStretch stretch = plan.courses().stretch(course);
    for (std::uint64_t step = 0; course.ramp > 0 && step <= stretch.steps(); ++step) {
      if (step > 0 && stretch.step_begin(step) >= stretch.end) break;
      entries.push_back(
          {course.begin + (stretch.step_begin(step) - course.unit) * course.parts, stretch.step_weights(step)});
    }
  }
  return MixturePlan(plain).with(std::make_shared<const Steering>(Steering(spec.names).with(entries)));
}

TEST(Ramp, GivesWhatItsStepsGiveOneByOne) {
  const Weights a{3, 1, 0};
  const Weights b{0, 1, 5};
  std::vector<MixtureSpec> specs{
      ramp_spec({{{0, false}, 0, a}, ramped(100, b, 300), {{1000, false}, 0, a}}),
      ramp_spec({{{0, false}, 0, a}, ramped(100, b, 5000), ramped(2000, {1, 1, 1}, 77)}),  // cut by the next one
      ramp_spec({{{0, false}, 0, a}, ramped(10, b, 1)}),
      ramp_spec({{{0, false}, 0, a}, ramped(10, a, 64)}),
      ramp_spec({{{0, false}, 16, a}, ramped(256, b, 3000, 16), ramped(5000, a, 900)}),
  };
  specs[4].group = 8;
  for (const MixtureSpec& spec : specs) {
    const MixturePlan plan{MixtureSpec(spec)};
    const auto plain = step_by_step(spec, plan);
    const std::vector<MixtureSlot> given = slots_of(plan, 8000);
    // What stands where in a group depends on where its stage began; what a group gives does not.
    const bool is_cut = plan.windows().size() > 1;
    if (!is_cut) {
      ASSERT_EQ(given, slots_of(*plain, given.size()));
    }
    Weights counts(3);
    Weights plain_counts(3);
    for (std::uint64_t p = 0; p < (is_cut ? 5024 : given.size()); p += is_cut ? 32 : 97) {
      plan.count(p, counts);
      plain->count(p, plain_counts);
      ASSERT_EQ(counts, plain_counts) << p;
      MixtureSlot alone;
      plan.find(p, 1, {&alone, 1});
      ASSERT_EQ(alone, given[p]);
    }
    EXPECT_EQ(plan.stages().size(), spec.stages.size()) << "steps are no stages";
    EXPECT_EQ(plan.stages()[1].ramp, plan.courses().list()[1].ramp);
  }
}

// Whatever its length, a ramp gives what the line between the shares says: no source gains by its steps' rounding.
TEST(Ramp, GivesTheMeanOfBothShares) {
  for (const std::uint64_t length : {16U, 100U, 400U, 3000U, 100'000U}) {
    double sum = 0;
    double off = 0;
    constexpr int kTrials = 40;
    for (std::uint64_t trial = 0; trial < kTrials; ++trial) {
      const std::uint64_t begin = 1000 + 77 * trial;
      const MixturePlan plan(ramp_spec({{{0, false}, 0, {900'001, 99'999, 0}}, ramped(begin, {1, 1, 2}, length)}));
      Weights before(3);
      Weights after(3);
      plan.count(begin, before);
      plan.count(begin + length, after);
      const double mean = static_cast<double>(length) * (0.900001 + 0.25) / 2;
      const double error = static_cast<double>(after[0] - before[0]) - mean;
      sum += error;
      off = std::max(off, std::abs(error));
    }
    const double steps = std::clamp(static_cast<double>(length) / 16, 1.0, 1024.0);
    EXPECT_LT(std::abs(sum / kTrials), 4 * std::sqrt(steps / kTrials)) << length;
    EXPECT_LT(off, 4 + 3 * std::sqrt(steps)) << length;
  }
}

TEST(Ramp, ASourceMayGiveItsCapInIt) {
  const MixtureSpec spec =
      ramp_spec({{{0, false}, 0, {1, 0, 0}}, ramped(100, {0, 1, 1}, 1000)}, {600, 60, Order::kNever});
  const MixturePlan plan{MixtureSpec(spec)};
  Weights counts(3);
  plan.count(5000, counts);
  EXPECT_EQ(counts[1], 60U);
  EXPECT_LE(counts[0], 600U);
  EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}), 5000U);
  const std::vector<MixtureStage> stages = plan.stages();
  EXPECT_EQ(stages[1].ramp, 1000U);
  EXPECT_TRUE(stages[2].implied);
  std::map<std::pair<std::uint32_t, std::uint64_t>, int> seen;
  for (const MixtureSlot& slot : slots_of(plan, 5000)) ASSERT_EQ((seen[{slot.source, slot.ordinal}]++), 0);
}

TEST(Ramp, RefusesWhatCannotBe) {
  const auto expect = [](MixtureSpec spec, const std::string& words) {
    testing::expect_error([&] { const MixturePlan plan(spec); }, ErrorKind::InvalidArgument, words);
  };
  expect(ramp_spec({ramped(0, {1, 1, 1}, 10)}), "stage 0: a ramp leads from the stage before");
  expect(ramp_spec({{{0, false}, 0, {1, 1, 1}}, ramped(5, {1, 0, 0}, 0)}), "stage 1: a ramp of 0 observations");
  MixtureSpec documents = ramp_spec({{{0, false}, 0, {1, 1, 1}}, ramped(5, {1, 0, 0}, 9)});
  documents.window = 0;
  documents.stages[1].ramp = MixturePlace{9, true};
  expect(documents, "documents have no window");
}

}  // namespace
}  // namespace penstock::shuffle
