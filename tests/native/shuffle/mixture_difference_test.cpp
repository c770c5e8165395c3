// What of a saved mixture is told apart, through the whole state: sources that only later stages use, orders, stages.
#include "shuffle/mixture_difference.h"

#include "tests/native/core/job/saved_job.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::shuffle {
namespace {

using namespace penstock::testing;

std::optional<std::string> difference(std::string_view saved, std::string_view current, std::uint64_t position) {
  return difference_of(saved, current, position, mixture_difference);
}

bool is_refused_here(const nlohmann::json& saved, const std::string& now, std::uint64_t position) {
  return is_refused(saved, now, position, mixture_difference);
}

TEST(SavedMixture, ASourceThatOnlyALaterStageUsesIsNoDifference) {
  const auto stages = [](const std::string& list) { return R"({"name":"stages","stages":[)" + list + "]}"; };
  const std::string saved = job_of(stages(R"({"begin":0,"sources":[0]})"), {kA});
  const std::string added = job_of(stages(R"({"begin":0,"sources":[0]},{"begin":100,"sources":[0,1]})"), {kA, kB});
  const std::string other = job_of(stages(R"({"begin":0,"sources":[0]},{"begin":100,"sources":[0,1]})"), {kA, kC});
  for (const std::uint64_t position : {0, 50, 100}) {
    EXPECT_EQ(difference(saved, added, position), std::nullopt);
    EXPECT_EQ(difference(added, saved, position), std::nullopt);
    EXPECT_EQ(difference(added, other, position), std::nullopt) << "a window of a later stage";
  }
  EXPECT_NE(difference(saved, added, 101).value_or("").find("number of sources: saved 1, now 2"), std::string::npos);
  EXPECT_EQ(difference(added, other, 101), "source 1: window: saved 16, now 32");
}

TEST(SavedMixture, NamedSourcesAreComparedByTheirNamesWhateverTheirNumbers) {
  const std::string order = R"({"name":"stages","stages":[{"begin":0,"sources":["wiki","code"]}]})";
  const std::string saved = job_of(order, {named(kA, "wiki"), named(kB, "code")});
  EXPECT_EQ(difference(saved, job_of(order, {named(kB, "code"), named(kC, "later"), named(kA, "wiki")}), 10),
            std::nullopt);
  EXPECT_EQ(difference(saved, job_of(order, {named(kA, "wiki"), named(kC, "code")}), 10),
            "source code: window: saved 16, now 32");
}

TEST(SavedMixture, StagesAndSourcesOfAMixtureAreToldApart) {
  const auto order = [](const std::string& stages, const std::string& orders = R"("a":{"seed":1,"size":9})",
                        const std::string& seed = "7") {
    return R"({"name":"mixture","orders":{)" + orders + R"(},"seed":)" + seed + R"(,"stages":[)" + stages + "]}";
  };
  const std::string first = R"({"begin":0,"sources":["a","b"],"weights":[3,1]})";
  const std::vector<SourceIdentity> sources{named(kA, "a"), named(kB, "b")};
  const std::string saved = job_of(order(first + R"(,{"begin":80,"sources":["a"],"weights":[1]})"), sources);
  EXPECT_EQ(difference(saved, job_of(order(first), sources), 80), std::nullopt);
  EXPECT_EQ(difference(saved, job_of(order(first), sources), 90),
            "stage 1: saved a 1 from position 80, now no such stage; 10 observations had been given from there on");
  EXPECT_EQ(
      difference(saved, job_of(order(R"({"begin":0,"sources":["a","b"],"weights":[2,1]})"), sources), 90),
      "stage 0: saved a 3, b 1 from position 0, now a 2, b 1 from position 0; 80 observations had been given from "
      "there on");
  EXPECT_EQ(difference(saved, job_of(order(first), {named(kA, "a"), named(kC, "b")}), 40),
            "source b: window: saved 16, now 32; about 10 observations of it had been given");
  const std::string alone = R"({"begin":0,"sources":["a"],"weights":[1]})";
  EXPECT_EQ(difference(saved, job_of(order(alone), {named(kA, "a")}), 40)
                .value_or("")
                .find("source b: saved, but not of the job now; about 10 observations of it had been given; stage 0: "),
            0U);
  EXPECT_EQ(difference(saved, job_of(order(first, R"("a":{"seed":2,"size":9})", "8"), sources), 40),
            "seed: saved 7, now 8");
  EXPECT_EQ(difference(saved, job_of(order(first, R"("a":{"block":4,"seed":1,"size":9})"), sources), 40),
            "source a: order's block: saved none, now 4");
  EXPECT_NE(difference(saved, job_of(order(R"({"begin":0,"sources":7,"weights":"x"})"), sources), 40), std::nullopt);
  const auto cut = [&](const char* rest) {
    return job_of(order(fmt::format(R"({{"begin":0,"sources":["a","b"],"weights":[3,1],"window":4,{}}})", rest)),
                  sources);
  };
  EXPECT_EQ(
      difference(cut(R"("group":64,"unit":8)"), cut(R"("group":128,"unit":9)"), 40),
      "stage 0: saved a 3, b 1 in windows of 4 from position 0, group 64, unit 8, now a 3, b 1 in windows of 4 from "
      "position 0, group 128, unit 9; 40 observations had been given from there on");
  const auto ended = [&](const char* end) {
    return job_of(order(first + fmt::format(R"(,{{"begin":80,"end":{},"sources":[],"weights":[]}})", end)), sources);
  };
  EXPECT_EQ(difference(ended("1200"), ended("1300"), 80), std::nullopt);
  EXPECT_EQ(difference(ended("1200"), ended("1300"), 90),
            "stage 1: saved the run's end at position 1,200, by which the group from 80 is mixed, now the run's end at "
            "position 1,300, by which the group from 80 is mixed; 10 observations had been given from there on");
  EXPECT_EQ(difference(ended("1200"), job_of(order(first), {named(kA, "a"), named(kC, "b")}), 100)
                .value_or("")
                .find("source b: window: saved 16, now 32; about 25 observations of it had been given; stage 1"),
            0U)
      << "the last group has its stage's weights";
}

TEST(SavedMixture, OfAMixtureNothingHasBeenGivenAtPosition0) {
  const auto job = [](const std::string& stages, const std::vector<SourceIdentity>& sources, int seed = 7) {
    return job_of(
        fmt::format(R"({{"name":"mixture","orders":{{"a":{{"size":9}}}},"seed":{},"stages":[{}]}})", seed, stages),
        sources);
  };
  const std::string saved = job(R"({"begin":0,"sources":["a","b"],"weights":[3,1]})", {named(kA, "a"), named(kB, "b")});
  const std::string other = R"({"begin":0,"sources":["a","c"],"weights":[2,1]})";
  EXPECT_EQ(difference(saved, job(other, {named(kA, "a"), named(kC, "c")}), 0), std::nullopt);
  EXPECT_NE(difference(saved, job(other, {named(kA, "a"), named(kC, "c")}), 1), std::nullopt);
  const std::string all_others = job(other, {named(kB, "a"), named(kC, "c")});
  EXPECT_EQ(difference(saved, all_others, 0), std::nullopt) << "another dataset of a source that stays";
  EXPECT_EQ(difference(saved, all_others, 1).value_or("").find("source a: dataset"), 0U);
  const std::string in_blocks = job_of(
      R"({"name":"mixture","orders":{"a":{"block":4}},"seed":7,"stages":[{"begin":0,"sources":["a"],"weights":[1]}]})",
      {named(kA, "a")});
  EXPECT_EQ(difference(saved, in_blocks, 0), std::nullopt) << "another order of it";
  EXPECT_EQ(difference(saved, job_of(uniform(7), {kA}), 0).value_or("").find("number of sources"), 0U)
      << "one dataset is no mixture";
  EXPECT_EQ(difference(saved, job(other, {named(kA, "a"), named(kC, "c")}, 8), 0), "seed: saved 7, now 8");
}

TEST(SavedMixture, WhatIsAddedLeftOutOrOfAnotherTypeIsRefusedAtEveryLevel) {
  const std::string order =
      R"({"algorithm":1,"name":"mixture","seed":7,
          "orders":{"a":{"name":"uniform","seed":1,"size":9},"b":{"name":"sequential","size":9}},
          "stages":[{"begin":0,"sources":["a"],"weights":[1]},{"begin":40,"sources":["a","b"],"weights":[3,1]}]})";
  expect_every_change_is_refused(job_of(order, {named(kA, "a"), named(kB, "b")}), 90, mixture_difference);
}

TEST(SavedMixture, WhatOnlyLaterStagesUseMayBeLeftOut) {
  const auto order = [](const char* more) {
    return fmt::format(
        R"({{"name":"mixture","orders":{{"a":{{"size":9}}{}}},"seed":7,"stages":[{{"begin":0,"sources":["a"],)"
        R"("weights":[1]}},{{"begin":40,"sources":["a","b"],"weights":[3,1]}}]}})",
        more);
  };
  const std::string whole = job_of(order(R"(,"b":{"size":5})"), {named(kA, "a"), named(kB, "b")});
  const std::string without_source = job_of(order(R"(,"b":{"size":5})"), {named(kA, "a")});
  const std::string without_order = job_of(order(""), {named(kA, "a"), named(kB, "b")});
  for (const std::string& saved : {without_source, without_order}) {
    EXPECT_EQ(difference(saved, whole, 40), std::nullopt);
    EXPECT_NE(difference(saved, whole, 41), std::nullopt);
  }
  EXPECT_EQ(difference(without_source, whole, 41),
            "source b: the saved stages use it, and the state says nothing of it");
  EXPECT_EQ(difference(without_order, whole, 41), "source b: order: saved none, now {\"size\":5}");
}

TEST(SavedMixture, WhatIsUnknownOfSourcesThatOnlyLaterStagesUseIsRefused) {
  const std::string order =
      R"({"name":"mixture","orders":{"a":{"size":9},"b":{"size":5}},"seed":7,"stages":[{"begin":0,"sources":["a"],)"
      R"("weights":[1]},{"begin":40,"sources":["a","b"],"weights":[3,1]}]})";
  SourceIdentity parts = kB;
  parts.view =
      R"({"kind":"packed","end_of_document":9,"fit":"best","group":2,"long":"split","multiple_of":1,"window":4,)"
      R"("slice":{"count":1,"first":0,"step":1},"split12":{"held_out":true,"one_in":2,"seed":1}})";
  const std::string now = job_of(order, {named(kA, "a"), named(kC, "b")});
  const nlohmann::json good = nlohmann::json::parse(job_of(order, {named(kA, "a"), named(parts, "b")}));
  for (const std::uint64_t position : {0, 40}) {
    ASSERT_FALSE(is_refused_here(good, now, position)) << "another view of a source that nothing was given of";
    for (const char* at : {"/sources/0", "/sources/0/dataset", "/sources/0/view", "/sources/1", "/sources/1/dataset",
                           "/sources/1/view"}) {
      nlohmann::json changed = good;
      changed[nlohmann::json::json_pointer(at)]["unknown"] = 1;
      EXPECT_TRUE(is_refused_here(changed, now, position)) << at << " at position " << position;
    }
    nlohmann::json changed = good;
    changed["sources"][1]["view"]["kind"] = "unknown";
    EXPECT_TRUE(is_refused_here(changed, now, position));
    changed = good;
    changed["sources"].push_back(good["sources"][1]);
    changed["sources"][2]["name"] = "c";
    EXPECT_FALSE(is_refused_here(changed, now, position)) << "a source that no stage uses decides nothing";
    changed["sources"][2]["unknown"] = 1;
    EXPECT_TRUE(is_refused_here(changed, now, position));
  }
}

}  // namespace
}  // namespace penstock::shuffle
