// Weights that are set while a mixture runs: plans, orders and jobs with them, against lists of as many stages.
#include "core/base/error.h"
#include "core/job/job.h"
#include "core/job/parsed_steering.h"
#include "core/job/steering.h"
#include "order_checks.h"
#include "shuffle/mixture.h"
#include "shuffle/uniform.h"
#include "tests/native/message_of.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace penstock::shuffle {
namespace {

using Weights = std::vector<std::uint64_t>;
using nlohmann::json;

const std::vector<std::string> kNames{"web", "code", "books"};

MixtureSpec steered_spec(std::vector<MixtureStageSpec> stages, Weights caps = {}) {
  MixtureSpec made;
  made.names = kNames;
  made.caps = caps.empty() ? Weights(kNames.size(), Order::kNever) : std::move(caps);
  made.stages = std::move(stages);
  made.window = 64;
  return made;
}

std::shared_ptr<const Steering> steering_of(const std::vector<Steering::Entry>& entries) {
  return std::make_shared<const Steering>(Steering(kNames).with(entries));
}

std::string text_of(const Steering& steering) {
  std::string text;
  steering.append_text(steering.size(), text);
  return text;
}

// ---- the list of them

TEST(Steering, KeepsWhatWasSetLastAtEachPosition) {
  std::mt19937_64 random(3);
  std::map<std::uint64_t, Weights> wanted;
  Steering steering(kNames);
  for (int i = 0; i < 1500; ++i) {
    const std::uint64_t begin = i % 3 == 0 ? random() % 5000 : 5000 + static_cast<std::uint64_t>(i);
    const Weights weights{random() % 5 + 1, random() % 7, 2 * (random() % 3)};
    const Steering before = steering;
    const Steering::Entry entry{begin, weights};
    steering = steering.with({&entry, 1});
    wanted[begin] = weights;
    ASSERT_EQ(steering.size(), wanted.size());
    ASSERT_LE(steering.common(before), before.count_before(begin) + 1);
    ASSERT_GE(steering.common(before), before.count_before(begin));
  }
  std::size_t number = 0;
  for (const auto& [begin, weights] : wanted) {
    ASSERT_EQ(steering.begin(number), begin);
    ASSERT_EQ(steering.count_before(begin), number);
    const Weights found = steering.weights(number++);
    for (std::size_t s = 0; s < weights.size(); ++s) ASSERT_EQ(found[s] * weights[0], weights[s] * found[0]);
  }
  EXPECT_EQ(steering.count_before(Order::kNever), wanted.size());
  const json said = {{"names", kNames}, {"stages", json::parse("[" + text_of(steering) + "]")}};
  const Steering again = parse_steering(said, kNames);
  EXPECT_EQ(text_of(again), text_of(steering));
  EXPECT_EQ(again.digest(), steering.digest());
  EXPECT_EQ(again.common(steering), wanted.size());
  for (const std::size_t count : {0U, 1U, 127U, 128U, 129U, 700U}) {
    std::string text;
    steering.append_text(count, text);
    EXPECT_EQ(text, text_of(steering.first(count)));
    EXPECT_EQ(text_of(steering.first(count).with_later(steering, count)), text_of(steering));
  }
}

TEST(Steering, WhatIsReadIsChecked) {
  const auto expect = [](const char* said, ErrorKind kind, const char* words) {
    testing::expect_error([&] { (void)parse_steering(json::parse(said), kNames); }, kind, words);
  };
  expect(R"({"names":["web"]})", ErrorKind::Corruption, "stages");
  expect(R"({"names":["web"],"stages":[[0,1,1]]})", ErrorKind::Corruption, "not [begin, weight, …]");
  expect(R"({"names":["web"],"stages":[[0,0]]})", ErrorKind::Corruption, "without weights");
  expect(R"({"names":["web"],"stages":[[4,1],[4,1]]})", ErrorKind::Corruption, "do not rise");
  expect(R"({"names":["web"],"stages":[[0,-1]]})", ErrorKind::Corruption, "a weight");
  expect(R"({"names":["web"],"stages":[[0,9223372036854775807]]})", ErrorKind::Corruption, "beyond 2^62");
  expect(R"({"names":["web"],"stages":[[9223372036854775809,1]]})", ErrorKind::Corruption, "do not rise");
  expect(R"({"names":["web","web"],"stages":[]})", ErrorKind::Corruption, "one name");
  expect(R"({"names":["new"],"stages":[[40,1]]})", ErrorKind::StateMismatch,
         "source new: it has a weight from position 40");
  const Steering other = parse_steering(json::parse(R"({"names":["new","code"],"stages":[[40,0,8]]})"), kNames);
  EXPECT_EQ(text_of(other), "[40,0,1,0]");
}

// ---- plans

/// A list that has what was set as stages.
MixtureSpec listed(const MixtureSpec& spec, const MixturePlan& plan) {
  MixtureSpec plain = spec;
  plain.stages.clear();
  for (std::optional<MixtureCourse> course = plan.courses().at(0); course; course = plan.courses().next(*course)) {
    plain.stages.push_back({{course->begin, false}, course->window, plan.courses().weights(*course)});
    if (course->ramp > 0) plain.stages.back().ramp = MixturePlace{course->ramp, false};
  }
  return plain;
}

void expect_same(const MixturePlan& plan, const MixturePlan& plain, std::uint64_t count) {
  count = std::min(count, plain.end());
  ASSERT_EQ(plan.end(), plain.end());
  std::vector<MixtureSlot> given(count);
  std::vector<MixtureSlot> wanted(count);
  plan.find(0, 1, given);
  plain.find(0, 1, wanted);
  ASSERT_EQ(given, wanted);
  Weights counts(3);
  Weights plain_counts(3);
  for (std::uint64_t p = 0; p < count; p += 61) {
    plan.count(p, counts);
    plain.count(p, plain_counts);
    ASSERT_EQ(counts, plain_counts) << p;
    ASSERT_EQ(plan.group_end(p), plain.group_end(p));
    ASSERT_EQ(plan.sources_at(p), plain.sources_at(p));
  }
  const std::vector<MixtureStage> stages = plan.stages();
  const std::vector<MixtureStage> plain_stages = plain.stages();
  ASSERT_EQ(stages.size(), plain_stages.size());
  for (std::size_t i = 0; i < stages.size(); ++i) {
    ASSERT_EQ(stages[i].begin, plain_stages[i].begin);
    ASSERT_EQ(stages[i].given, plain_stages[i].given);
    ASSERT_EQ(stages[i].weights, plain_stages[i].weights);
    ASSERT_EQ(stages[i].implied, plain_stages[i].implied);
  }
}

TEST(SteeredPlan, GivesWhatAListOfAsManyStagesGives) {
  MixtureSpec cuts =
      steered_spec({{{0, false}, 16, {3, 1, 1}}, {{900, false}, 0, {1, 1, 0}}, {{3000, false}, 32, {1, 0, 2}}},
                   {Order::kNever, 300, Order::kNever});
  cuts.group = 8;
  const std::vector<MixtureSpec> specs{
      // Ramps that cut each other, end where the next one begins, or before.
      steered_spec({{{0, false}, 0, {3, 1, 0}},
                    {{400, false}, 0, {0, 1, 5}, MixturePlace{900, false}},
                    {{700, false}, 0, {1, 1, 1}, MixturePlace{800, false}},
                    {{1500, false}, 0, {7, 0, 1}, MixturePlace{500, false}},
                    {{2000, false}, 0, {1, 1, 3}, MixturePlace{40, false}},
                    {{2500, false}, 0, {0, 9, 1}, MixturePlace{5000, false}}}),
      steered_spec({{{0, false}, 0, {3, 1, 0}}}),
      steered_spec({{{0, false}, 0, {3, 1, 0}}, {{1000, false}, 0, {0, 1, 1}, MixturePlace{900, false}}}),
      steered_spec({{{0, false}, 0, {3, 1, 1}}, {{2000, false}, 0, {1, 1, 1}}}, {Order::kNever, 250, 90}), cuts};
  std::mt19937_64 random(7);
  for (const MixtureSpec& spec : specs) {
    for (const int changes : {1, 3, 40, 300}) {
      auto plan = std::make_shared<const MixturePlan>(MixtureSpec(spec));
      Steering steering(kNames);
      std::uint64_t position = 0;
      for (int i = 0; i < changes; ++i) {
        position += random() % 23;
        const Weights weights{1 + random() % 90, random() % 50,
                              random() % 4};  // whose words begin anywhere in a list, too
        const Steering::Entry entry{plan->courses().begin_of_change(position), weights};
        steering = steering.with({&entry, 1});
        plan = plan->with(std::make_shared<const Steering>(steering));
      }
      const MixturePlan plain(listed(spec, *plan));
      expect_same(*plan, plain, 6000);
      const MixturePlan fresh{MixtureSpec(spec)};
      expect_same(*fresh.with(std::make_shared<const Steering>(steering)), plain, 6000);  // all at once
      const auto half = std::make_shared<const Steering>(steering.first(steering.size() / 2));
      expect_same(*plan->with(half), MixturePlan(listed(spec, *fresh.with(half))), 6000);
    }
  }
}

// Each begins at a step of the one before, so at the first one of all.
TEST(SteeredPlan, RampsThatCutEachOtherAreAsManyAsMayBe) {
  constexpr std::uint64_t kCount = 50'000;
  std::vector<MixtureStageSpec> stages{{{0, false}, 0, {3, 1, 0}}};
  for (std::uint64_t i = 1; i < kCount; ++i) {
    stages.push_back({{i * 40, false}, 0, {i % 7, 1, i % 3}, MixturePlace{64, false}});
  }
  const MixturePlan plan(steered_spec(std::move(stages)));
  std::vector<MixtureSlot> slots(80);
  plan.find((kCount - 2) * 40, 1, slots);
  Weights given(3);
  for (const MixtureSlot& slot : slots) ++given[slot.source];
  EXPECT_GT(given[0], 0U);
  EXPECT_GT(given[1], 0U);
}

TEST(SteeredPlan, RefusesWeightsOfRowsOfAnotherLength) {
  MixtureSpec spec;
  spec.names = {"web", "code", "web@32", "code@32"};
  spec.caps = Weights(4, Order::kNever);
  spec.window = 64;
  spec.are_packed = true;
  spec.of_each_length = 2;
  const auto plan_of = [&](std::uint64_t later) {
    MixtureSpec made = spec;
    made.stages = {
        {{0, false}, 64, {1, 1, 0, 0}}, {{later, false}, 32, {0, 0, 3, 1}}, {{900, false}, 64, {1, 0, 0, 0}}};
    return MixturePlan(std::move(made));
  };
  const auto set = std::make_shared<const Steering>(
      Steering(spec.names).with(std::vector<Steering::Entry>{{40, {0, 1, 0, 0}}, {400, {0, 0, 0, 1}}}));
  EXPECT_EQ(plan_of(300).with(set)->sources_at(400), (std::vector<std::uint32_t>{3}));
  testing::expect_error(
      [&] { (void)plan_of(500).with(set); }, ErrorKind::InvalidArgument,
      "the weights set at position 400: they are of code@32, rows of the length of stage 1, but there "
      "stage 0 has code");
  testing::expect_error([&] { (void)plan_of(20).with(set); }, ErrorKind::InvalidArgument,
                        "they are of code, rows of the length of stage 0, 2, but there stage 1 has code@32");
}

// A message says about how much; what stands in a group is not looked at one by one.
TEST(SteeredPlan, WhatHasBeenGivenIsEstimatedWithinAGroup) {
  MixtureSpec spec =
      steered_spec({{{0, false}, 16, {3, 1, 1}}, {{900, false}, 0, {1, 1, 0}}}, {Order::kNever, 300, Order::kNever});
  spec.group = 64;
  const auto plan = MixturePlan(MixtureSpec(spec)).with(steering_of({{256, {1, 0, 0}}, {512, {1, 0, 3}}}));
  Weights counted(3);
  Weights estimated(3);
  for (const std::uint64_t p : {0U, 1U, 255U, 256U, 300U, 511U, 700U, 1023U, 1024U, 1500U}) {
    plan->count(p, counted);
    plan->estimate(p, estimated);
    for (std::size_t s = 0; s < 3; ++s) {
      EXPECT_NEAR(static_cast<double>(estimated[s]), static_cast<double>(counted[s]), 24) << p;
    }
    if (p % 256 == 0) {
      EXPECT_EQ(estimated, counted);
    }
  }
  spec.group = std::uint64_t{1} << 30;
  const MixturePlan large(std::move(spec));
  const std::uint64_t position = std::uint64_t{3} << 28;
  testing::expect_error([&] { large.count(position, counted); }, ErrorKind::InvalidArgument, "counted one by one");
  large.estimate(position, estimated);
  EXPECT_NEAR(static_cast<double>(estimated[0] + estimated[1] + estimated[2]), static_cast<double>(position), 3);
}

// Many short stages: none is favoured by where its strata begin.
TEST(SteeredPlan, GivesEachSourceItsShareOverManyShortStages) {
  for (const std::uint64_t length : {1U, 3U, 8U, 64U}) {
    std::vector<Steering::Entry> entries;
    for (std::uint64_t i = 0; i < 4000; ++i)
      entries.push_back({i * length, {700'000'000 + i, 250'000'007, 50'000'001}});
    const MixturePlan list(steered_spec({{{0, false}, 0, {1, 1, 1}}}));
    const auto plan = list.with(steering_of(entries));
    Weights counts(3);
    plan->count(4000 * length, counts);
    const auto share = static_cast<double>(counts[0]) / static_cast<double>(4000 * length);
    EXPECT_NEAR(share, 0.7, 4 * 0.5 / std::sqrt(4000) / static_cast<double>(length)) << length;
    std::vector<MixtureSlot> slots(4000 * length);
    plan->find(0, 1, slots);
    Weights given(3);
    for (const MixtureSlot& slot : slots) ASSERT_EQ(slot.ordinal, given[slot.source]++);
  }
}

// What stands at a position never changes.
TEST(SteeredPlan, GoldenValues) {
  MixtureSpec made = steered_spec({{{0, false}, 0, {3, 1, 2}},
                                   {{100, false}, 0, {1'000'003, 20'011, 77}, MixturePlace{150, false}},
                                   {{400, false}, 16, {1, 1, 1}, MixturePlace{640, false}}},
                                  {Order::kNever, 90, Order::kNever});
  made.group = 8;
  const auto plan =
      MixturePlan(std::move(made))
          .with(steering_of({{40, {5, 0, 3}}, {300, {700'000'001, 200'000'003, 100'000'007}}, {1488, {1, 0, 9}}}));
  std::string text;
  for (const std::uint64_t p : {0U,   39U,  40U,  41U,  99U,  100U,  101U,  180U,  249U,  250U,  299U,          300U,
                                301U, 399U, 400U, 401U, 700U, 1039U, 1040U, 1487U, 1488U, 5000U, 1'000'000'000U}) {
    MixtureSlot slot;
    plan->find(p, 1, {&slot, 1});
    text += fmt::format("{}.{}.{} ", slot.source, slot.ordinal, slot.part);
  }
  EXPECT_EQ(
      text,
      "0.0.0 1.6.0 0.20.0 2.13.0 2.35.0 2.36.0 0.57.0 2.57.0 0.178.0 0.179.0 0.226.0 0.227.0 1.10.0 0.295.0 0.299.2 "
      "0.297.0 0.344.2 1.72.1 0.379.0 2.153.2 2.163.2 2.945.1 2.224999820.3 ");
}

TEST(SteeredPlan, RefusesSourcesThatHaveGivenTheirCaps) {
  const MixturePlan plan(
      steered_spec({{{0, false}, 0, {1, 1, 1}}, {{900, false}, 0, {1, 0, 1}}}, {Order::kNever, 20, 100}));
  const auto expect = [&](const Steering::Entry& entry, const char* words) {
    testing::expect_error([&] { (void)plan.with(steering_of({entry})); }, ErrorKind::InvalidArgument, words);
  };
  expect({100, {0, 1, 0}}, "the weights set at position 100: their sources (code) have given their caps");
  expect({100, {0, 0, 1}}, "the weights set at position 100: their sources have given their caps by position");
  EXPECT_EQ(plan.end(), Order::kNever);
  EXPECT_EQ(plan.with(steering_of({{10, {1, 0, 0}}, {950, {0, 0, 1}}}))->end(), 1022U) << "28 of books had been given";
}

// ---- jobs

std::shared_ptr<const Mixture> steered_order(MixtureSpec spec, std::uint64_t seed = 5) {
  const auto plan = std::make_shared<const MixturePlan>(std::move(spec));
  std::vector<std::shared_ptr<const Order>> orders;
  for (const std::string& name : plan->spec().names) {
    orders.push_back(std::make_shared<Uniform>(1000, Mixture::source_seed(seed, name)));
  }
  return std::make_shared<const Mixture>(plan, std::move(orders), seed, true);
}

Job job_of(std::shared_ptr<const Order> order) {
  std::vector<SourceIdentity> sources;
  for (const std::string& name : kNames) sources.push_back({"aa", 1, 1000, R"({"kind":"windows","window":64})", name});
  CursorOptions options;
  options.schedule = {{0, 8}};
  return {std::move(order), sources, std::move(options)};
}

std::vector<Pick> picked(const Job& job, std::uint64_t count) {
  std::vector<Pick> out(count);
  job.order().pick(0, 1, out);
  return out;
}

TEST(SteeredJob, AStateHasWhatWasSetAndAFreshJobGoesOnFromIt) {
  const Job fresh = job_of(steered_order(steered_spec({{{0, false}, 0, {3, 1, 0}}, {{400, false}, 0, {1, 1, 1}}})));
  Job job = fresh;
  for (std::uint64_t position = 8; position < 600; position += 8) {
    job = job.with_weights(position, {position % 7 + 1, 1, position % 3});
  }
  const json said = json::parse(job.json());
  EXPECT_EQ(said["format"], 2);
  EXPECT_EQ(said.dump(), job.json()) << "canonical";
  EXPECT_EQ(said["order"]["steered"]["stages"].size(), 74U);
  EXPECT_EQ(said["order"].dump(), job.order().identity(Order::kNever));
  for (std::uint64_t position = 0; position <= 600; position += 8) {
    const State known{kStateVersion, position, job.json_before(position)};
    const Resume resume = fresh.load(known, OnMismatch::Refuse);
    EXPECT_EQ(resume.position, position);
    EXPECT_EQ(resume.job->json_before(position), known.job);
    std::vector<Pick> before(position);
    job.order().pick(0, 1, before);
    std::vector<Pick> again(position);
    resume.job->order().pick(0, 1, again);
    EXPECT_EQ(before, again);
    const Resume whole = fresh.load(job.state(position), OnMismatch::Refuse);
    EXPECT_EQ(picked(*whole.job, 700), picked(job, 700));
    // What the loader had set from there on stays.
    const Resume kept = job.load(known, OnMismatch::Refuse);
    EXPECT_EQ(picked(*kept.job, 700), picked(job, 700));
  }
  const Resume back = job.load(fresh.state(0), OnMismatch::Refuse);
  EXPECT_EQ(picked(*back.job, 700), picked(job, 700));
  EXPECT_NE(job.summary(), fresh.summary());
  EXPECT_LT(job.summary().size(), fresh.json().size() + 200);
}

// What a state says of it: read by all later versions.
TEST(SteeredJob, GoldenText) {
  const Job fresh = job_of(steered_order(steered_spec(
      {{{0, false}, 0, {3, 1, 0}}, {{400, false}, 0, {1, 1, 1}, MixturePlace{32, false}}}, {900, Order::kNever, 80})));
  const std::string text = fresh.with_weights(8, {4, 2, 0}).with_weights(24, {0, 1, 7}).json();
  EXPECT_EQ(
      text,
      R"({"format":2,"order":{"algorithm":1,"caps":{"books":80,"web":900},"name":"mixture",)"
      R"("orders":{"books":{"algorithm":1,"name":"uniform","seed":697603379812152312,"size":1000},)"
      R"("code":{"algorithm":1,"name":"uniform","seed":8781297828171707357,"size":1000},)"
      R"("web":{"algorithm":1,"name":"uniform",)"
      R"("seed":5856062653748736340,"size":1000}},"seed":5,"stages":[{"begin":0,"sources":["code","web"],"weights":[1,3]},{"begin":400,"ramp":32,"sources":["books","code","web"],"weights":[1,1,1]}],)"
      R"("steered":{"names":["web","code","books"],"stages":[[8,2,1,0],[24,0,1,7]]}},)"
      R"("skip":[],"sources":[{"dataset":{"fingerprint":"aa","records":1000,"shards":1},"name":"web","view":{"kind":"windows","window":64}},)"
      R"({"dataset":{"fingerprint":"aa","records":1000,"shards":1},"name":"code","view":{"kind":"windows","window":64}},)"
      R"({"dataset":{"fingerprint":"aa","records":1000,"shards":1},"name":"books","view":{"kind":"windows","window":64}}]})");
  EXPECT_EQ(fresh.load({kStateVersion, 80, text}, OnMismatch::Refuse).message,
            "resumes at stage 0 (weights that were set from position 24 on), position 80, step 10");
}

TEST(SteeredJob, ToBeSteeredIsPartOfIt) {
  MixtureSpec spec = steered_spec({{{0, false}, 0, {3, 1, 0}}});
  const auto order = steered_order(spec);
  const Job steered = job_of(order);
  std::vector<std::shared_ptr<const Order>> orders;
  for (const std::string& name : kNames)
    orders.push_back(std::make_shared<Uniform>(1000, Mixture::source_seed(5, name)));
  const Job plain = job_of(std::make_shared<const Mixture>(order->plan(), orders, 5));
  EXPECT_EQ(json::parse(plain.json())["format"], 1);
  const auto expect = [](const Job& job, const State& state, const char* words) {
    testing::expect_error([&] { (void)job.load(state, OnMismatch::Refuse); }, ErrorKind::StateMismatch, words);
  };
  expect(plain, steered.with_weights(8, {1, 1, 1}).state(16), "steered: the state's mixture is, this one is not");
  expect(steered, plain.state(16), "steered: the state's mixture is not, this one is");
  EXPECT_EQ(steered.load(plain.state(16), OnMismatch::KeepPosition).position, 16U);
  EXPECT_THROW((void)plain.with_weights(8, {1, 1, 1}), Error);
  State damaged = steered.with_weights(8, {1, 1, 1}).state(16);
  damaged.job.replace(damaged.job.find("[8,1,1,1]"), 9, "[8,1,1]");
  expect(steered, damaged, "not [begin, weight");
}

TEST(SteeredJob, ToKeepThePositionKeepsWeightsOfSourcesThatAreThere) {
  const Job saved = job_of(steered_order(steered_spec({{{0, false}, 0, {3, 1, 1}}})))
                        .with_weights(8, {1, 2, 0})
                        .with_weights(16, {0, 0, 1})
                        .with_weights(24, {1, 0, 3});
  State state = saved.state(32);
  for (std::size_t at = 0; (at = state.job.find("\"books\"", at)) != std::string::npos;) {
    state.job.replace(at, 7, "\"other\"");
  }
  const Job now = job_of(steered_order(steered_spec({{{0, false}, 0, {1, 1, 0}}})));
  testing::expect_error([&] { (void)now.load(state, OnMismatch::Refuse); }, ErrorKind::StateMismatch,
                        "source other: it has a weight from position 16 on, but is not of the job now");
  const Resume kept = now.load(state, OnMismatch::KeepPosition);
  EXPECT_EQ(kept.position, 32U);
  EXPECT_TRUE(kept.message.ends_with("; the weights that were set go on without sources that this job lacks"))
      << kept.message;
  ASSERT_NE(kept.job, nullptr);
  EXPECT_EQ(text_of(*kept.job->order().steering()), "[8,1,2,0],[24,1,0,0]");
  // Those that cannot be at all are left out, which is said.
  const Job capped = job_of(steered_order(steered_spec({{{0, false}, 0, {1, 1, 1}}}, {4, Order::kNever, 5})));
  const Resume none = capped.load(saved.state(32), OnMismatch::KeepPosition);
  EXPECT_EQ(none.job, nullptr);
  EXPECT_TRUE(none.message.ends_with("; the weights that were set in the state's job are left out")) << none.message;
}

TEST(SteeredJob, ListAndCapsAreComparedUpToThePosition) {
  const MixtureSpec spec =
      steered_spec({{{0, false}, 0, {2, 1, 1}}, {{400, false}, 0, {1, 1, 1}}}, {Order::kNever, 100, Order::kNever});
  const Job job = job_of(steered_order(spec)).with_weights(80, {1, 1, 0});
  const auto with = [&](Weights caps, std::uint64_t later, Weights first = {2, 1, 1}) {
    return job_of(steered_order(
        steered_spec({{{0, false}, 0, std::move(first)}, {{later, false}, 0, {1, 2, 1}}}, std::move(caps))));
  };
  const auto is_taken = [&](const Job& other, std::uint64_t position) {
    try {
      return other.load(job.state(position), OnMismatch::Refuse).position == position;
    } catch (const Error&) {
      return false;
    }
  };
  Weights counts(3);
  dynamic_cast<const Mixture&>(job.order()).plan()->count(400, counts);
  ASSERT_EQ(counts[1], 100U);
  EXPECT_TRUE(is_taken(with({Order::kNever, 100, Order::kNever}, 401), 400));
  EXPECT_FALSE(is_taken(with({Order::kNever, 100, Order::kNever}, 399), 400));
  EXPECT_FALSE(is_taken(with({Order::kNever, 100, Order::kNever}, 401, {3, 1, 1}), 80));
  EXPECT_TRUE(is_taken(with({Order::kNever, 120, Order::kNever}, 401), 160));
  EXPECT_FALSE(is_taken(with({Order::kNever, 120, Order::kNever}, 401), 400)) << "code had given its cap";
  EXPECT_FALSE(is_taken(with({Order::kNever, 30, Order::kNever}, 401), 160)) << "now it has given its cap before";
  EXPECT_TRUE(is_taken(with({Order::kNever, 100, 5000}, 401), 160));
}

TEST(SteeredJob, AHundredThousandChangesAreFewMegabytesAndQuick) {
  constexpr std::uint64_t kCount = 100'000;
  const Job fresh = job_of(steered_order(steered_spec({{{0, false}, 0, {3, 1, 1}}})));
  Job job = fresh;
  std::mt19937_64 random(1);
  for (std::uint64_t i = 0; i < kCount; ++i) {
    job = job.with_weights(i * 512, {random() % 1'000'000'000 + 1, random() % 1'000'000'000, random() % 1'000'000'000});
  }
  const std::string text = job.json();
  EXPECT_LT(text.size(), kCount * 45);
  const Job again = *fresh.load(job.state(kCount * 512), OnMismatch::Refuse).job;
  for (const std::uint64_t position : {0UL, 5'000'000UL, 51'199'999UL, 51'200'000UL, 60'000'000UL}) {
    std::vector<Pick> one(700);
    std::vector<Pick> other(700);
    job.order().pick(position, 1, one);
    again.order().pick(position, 1, other);
    ASSERT_EQ(one, other);
  }
}

}  // namespace
}  // namespace penstock::shuffle
