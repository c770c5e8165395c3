// What of a saved mixture is told apart, through the whole state: sources that only later stages use, orders, stages.
#include "shuffle/mixture_difference.h"

#include "tests/native/core/job/saved_job.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace penstock::shuffle {
namespace {

using namespace penstock::testing;
using Sources = std::vector<SourceIdentity>;

/// The texts of a difference, which may end with …; "": there is none.
void expect_said(const std::string& saved, const std::string& now, std::uint64_t position, std::string text) {
  const std::string said = difference_of(saved, now, position, mixture_difference).value_or("");
  const bool is_begin = text.ends_with("…");
  if (is_begin) text.resize(text.size() - std::string("…").size());
  EXPECT_TRUE(is_begin ? said.starts_with(text) : said == text) << position << ": " << said << "\nexpected: " << text;
}

bool is_refused_here(const nlohmann::json& saved, const std::string& now, std::uint64_t position) {
  return is_refused(saved, now, position, mixture_difference);
}

/// The job of a mixture of these stages.
std::string mixture(const std::string& stages, const Sources& sources, int seed = 7,
                    const std::string& orders = R"("a":{"seed":1,"size":9})") {
  return job_of(fmt::format(R"({{"name":"mixture","orders":{{{}}},"seed":{},"stages":[{}]}})", orders, seed, stages),
                sources);
}

const Sources kAAndB{named(kA, "a"), named(kB, "b")};
const Sources kAAndC{named(kA, "a"), named(kC, "b")};
const std::string kThreeToOne = R"({"begin":0,"sources":["a","b"],"weights":[3,1]})";

TEST(SavedMixture, SourcesThatOnlyALaterStageUsesAreNoDifference) {
  const auto stages = [](const std::string& list, const Sources& sources) {
    return job_of(R"({"name":"stages","stages":[)" + list + "]}", sources);
  };
  const std::string later = R"({"begin":0,"sources":[0]},{"begin":100,"sources":[0,1]})";
  const std::string saved = stages(R"({"begin":0,"sources":[0]})", {kA});
  const std::string added = stages(later, {kA, kB});
  const std::string other = stages(later, {kA, kC});
  for (const std::uint64_t position : {0, 50, 100}) {
    expect_said(saved, added, position, "");
    expect_said(added, saved, position, "");
    expect_said(added, other, position, "");
  }
  expect_said(saved, added, 101, "number of sources: saved 1, now 2…");
  expect_said(added, other, 101, "source 1: window: saved 16, now 32");
  const std::string names = R"({"begin":0,"sources":["a","b"]})";
  expect_said(stages(names, kAAndB), stages(names, {kAAndB[1], named(kC, "later"), kAAndB[0]}), 10, "");
  expect_said(stages(names, kAAndB), stages(names, kAAndC), 10, "source b: window: saved 16, now 32");
}

TEST(SavedMixture, StagesAndSourcesOfAMixtureAreToldApart) {
  const std::string saved = mixture(kThreeToOne + R"(,{"begin":80,"sources":["a"],"weights":[1]})", kAAndB);
  const auto expect_now = [&](const std::string& now, std::uint64_t position, const std::string& text) {
    expect_said(saved, now, position, text);
  };
  expect_now(mixture(kThreeToOne, kAAndB), 80, "");
  expect_now(mixture(kThreeToOne, kAAndB), 90,
             "stage 1: saved a 1 from position 80, now no such stage; 10 observations had been given from there on");
  expect_now(mixture(R"({"begin":0,"sources":["a","b"],"weights":[2,1]})", kAAndB), 90,
             "stage 0: saved a 3, b 1 from position 0, now a 2, b 1 from position 0; 80 observations had been given "
             "from there on");
  expect_now(mixture(kThreeToOne, kAAndC), 40,
             "source b: window: saved 16, now 32; about 10 observations of it had been given");
  expect_now(mixture(R"({"begin":0,"sources":["a"],"weights":[1]})", {named(kA, "a")}), 40,
             "source b: saved, but not of the job now; about 10 observations of it had been given; stage 0: …");
  expect_now(mixture(kThreeToOne, kAAndB, 8, R"("a":{"seed":2,"size":9})"), 40, "seed: saved 7, now 8");
  expect_now(mixture(kThreeToOne, kAAndB, 7, R"("a":{"block":4,"seed":1,"size":9})"), 40,
             "source a: order's block: saved none, now 4");
  EXPECT_TRUE(
      is_refused_here(nlohmann::json::parse(saved), mixture(R"({"begin":0,"sources":7,"weights":"x"})", kAAndB), 40));
  const auto ended = [&](const std::string& end) {
    return mixture(kThreeToOne + R"(,{"begin":80,"end":)" + end + R"(,"sources":[],"weights":[]})", kAAndB);
  };
  // The last group has its stage's weights.
  expect_said(ended("1200"), mixture(kThreeToOne, kAAndC), 100,
              "source b: window: saved 16, now 32; about 25 observations of it had been given; stage 1…");
}

const std::string kLater =
    R"({"begin":0,"sources":["a"],"weights":[1]},{"begin":40,"sources":["a","b"],"weights":[3,1]})";

TEST(SavedMixture, WhatIsAddedLeftOutOrOfAnotherTypeIsRefusedAtEveryLevel) {
  const std::string orders = R"("a":{"name":"uniform","seed":1,"size":9},"b":{"name":"sequential","size":9})";
  expect_every_change_is_refused(mixture(kLater, kAAndB, 7, orders), 90, mixture_difference);
}

TEST(SavedMixture, WhatOnlyLaterStagesUseMayBeLeftOut) {
  const std::string both = R"("a":{"size":9},"b":{"size":5})";
  const std::string whole = mixture(kLater, kAAndB, 7, both);
  const std::string without_source = mixture(kLater, {named(kA, "a")}, 7, both);
  const std::string without_order = mixture(kLater, kAAndB, 7, R"("a":{"size":9})");
  expect_said(without_source, whole, 40, "");
  expect_said(without_order, whole, 40, "");
  expect_said(without_source, whole, 41, "source b: the saved stages use it, and the state says nothing of it");
  expect_said(without_order, whole, 41, "source b: order: saved none, now {\"size\":5}");
}

TEST(SavedMixture, WhatIsUnknownOfSourcesThatOnlyLaterStagesUseIsRefused) {
  const std::string both = R"("a":{"size":9},"b":{"size":5})";
  SourceIdentity parts = kB;
  parts.view =
      R"({"kind":"packed","end_of_document":9,"fit":"best","group":2,"long":"split","multiple_of":1,"window":4,)"
      R"("slice":{"count":1,"first":0,"step":1},"split12":{"held_out":true,"one_in":2,"seed":1}})";
  const std::string now = mixture(kLater, kAAndC, 7, both);
  const auto good = nlohmann::json::parse(mixture(kLater, {named(kA, "a"), named(parts, "b")}, 7, both));
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

const std::string kRamp = R"({"begin":40,"ramp":16,"sources":["a","b"],"weights":[3,1]})";

/// A mixture of kThreeToOne, an implied stage and a ramp, which was asked for as this list.
std::string asking(const std::string& list, const std::string& more = "") {
  return job_of(fmt::format(R"({{{}"name":"mixture","orders":{{"a":{{"size":9}}}},"seed":7,"stages":[{},{},{}]}})",
                            list.empty() ? "" : R"("asked":{"caps":{"b":3},"stages":[)" + list + "]" + more + "},",
                            kThreeToOne, R"({"begin":20,"sources":["a"],"weights":[1]})", kRamp),
                kAAndB);
}

TEST(SavedMixture, OfStagesThatCameOutAlikeThoseAskedForAreCompared) {
  const std::string saved = asking(kThreeToOne + "," + kRamp);
  const std::string other = asking(kThreeToOne + R"(,{"begin":20,"sources":["a"],"weights":[1]},)" + kRamp);
  for (const std::uint64_t position : {0, 20}) expect_said(saved, other, position, "");
  expect_said(saved, other, 21,
              "stage 1 as it was asked for: saved no such stage, now a 1 from position 20; 1 "
              "observation had been given from there on");
  expect_said(other, saved, 50, "stage 1 as it was asked for: saved a 1 from position 20, now a 3…");
  // Another stage that came out has been told, and what follows from it is not.
  expect_said(saved, mixture(kThreeToOne, kAAndB, 7, R"("a":{"size":9})"), 50,
              "stage 1: saved a 1 from position 20, now no such stage; 20 observations had been given from there on");
  for (const std::string& silent : {asking(""), saved}) {
    expect_said(silent, saved, 50, "");
    expect_said(saved, silent, 50, "");
    EXPECT_TRUE(is_refused_here(nlohmann::json::parse(asking(kRamp, R"(,"more":1)")), silent, 50));
  }
}

}  // namespace
}  // namespace penstock::shuffle
