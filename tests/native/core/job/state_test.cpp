#include "core/job/state.h"

#include "core/base/error.h"
#include "core/base/json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace penstock {
namespace {

class FakeOrder final : public Order {
 public:
  explicit FakeOrder(std::string identity) : identity_(std::move(identity)) {}
  void pick(std::uint64_t, std::uint64_t, std::span<Pick>) const override {}
  [[nodiscard]] std::uint64_t epoch_size() const override { return 1; }
  [[nodiscard]] std::uint64_t end(std::uint64_t) const override { return kNever; }
  [[nodiscard]] std::uint64_t fetch_end(std::uint64_t position) const override { return position + 1; }
  [[nodiscard]] std::string identity(std::uint64_t) const override { return identity_; }

 private:
  std::string identity_;
};

const char* const kOldPrint = "3f2a0b1c4d5e6f708192a3b4c5d6e7f8";
const char* const kNewPrint = "9b1c0b1c4d5e6f708192a3b4c5d6e7f8";

std::string uniform(std::uint64_t seed, std::uint64_t size = 244) {
  return R"({"algorithm":1,"name":"uniform","seed":)" + std::to_string(seed) + R"(,"size":)" + std::to_string(size) +
         "}";
}
std::string windows(std::uint64_t window) {
  return R"({"kind":"windows","lookahead":1,"window":)" + std::to_string(window) + "}";
}

struct Parts {
  std::string order = uniform(1);
  std::string fingerprint = kOldPrint;
  std::uint64_t shards = 12;
  std::uint64_t records = 1'000'000;
  std::string view = windows(4'096);
  Ranges skip;
};

std::string job(const Parts& parts) {
  const SourceIdentity source{parts.fingerprint, parts.shards, parts.records, parts.view, ""};
  return job_json(FakeOrder(parts.order), std::span(&source, 1), parts.skip);
}

std::string difference(const Parts& saved, const Parts& now, std::uint64_t position) {
  return job_difference(job(saved), job(now), position).value_or("");
}

TEST(Job, TheTextIsCanonical) {
  Parts parts;
  parts.skip = {{50, 60}, {10, 20}, {20, 25}, {30, 30}};
  parts.order = R"({ "seed": 1, "name": "uniform" })";  // not canonical itself
  EXPECT_EQ(job(parts), R"({"format":1,"order":{"name":"uniform","seed":1},"skip":[[10,25],[50,60]],)"
                        R"("sources":[{"dataset":{"fingerprint":"3f2a0b1c4d5e6f708192a3b4c5d6e7f8","records":1000000,)"
                        R"("shards":12},"view":{"kind":"windows","lookahead":1,"window":4096}}]})");
}

TEST(Job, TheSameJobHasNoDifference) {
  EXPECT_EQ(difference({}, {}, 0), "");
  EXPECT_EQ(difference({}, {}, 1'000'000), "");
  // The same records in other shards, and the same text written otherwise.
  Parts moved;
  moved.shards = 3;
  EXPECT_EQ(difference({}, moved, 5), "");
  EXPECT_EQ(job_difference(nlohmann::json::parse(job({})).dump(2), job({}), 7), std::nullopt);
}

TEST(Job, AllThatDiffersIsNamedAlsoAtPositionZero) {
  Parts now;
  now.order = uniform(2, 500);
  now.fingerprint = kNewPrint;
  now.shards = 13;
  now.records = 1'100'000;
  now.view = windows(2'048);
  for (const std::uint64_t position : {0, 1'000}) {
    EXPECT_EQ(difference({}, now, position),
              "dataset: the state was saved on 3f2a0b1c… (12 shards, 1,000,000 records), this one is 9b1c0b1c… "
              "(13 shards, 1,100,000 records); window: saved 4,096, now 2,048; seed: saved 1, now 2");
  }
}

TEST(Job, ACollectionIsToldByItsObservations) {
  Parts saved;
  saved.shards = 0;
  saved.records = 1'000;
  saved.view = R"({"kind":"collection"})";
  Parts now = saved;
  now.fingerprint = kNewPrint;
  now.records = 900;
  EXPECT_EQ(difference(saved, now, 0),
            "dataset: the state was saved on 3f2a0b1c… (1,000 observations), this one is 9b1c0b1c… (900 observations)");
}

TEST(Job, EachPartIsADifferenceAlone) {
  Parts now;
  now.order = uniform(12'345);
  EXPECT_EQ(difference({}, now, 0), "seed: saved 1, now 12345");
  now = {};
  now.fingerprint = std::string(kOldPrint).replace(31, 1, "0");
  now.shards = 1;
  EXPECT_EQ(difference({}, now, 0),
            "dataset: the state was saved on 3f2a0b1c4d5e6f708192a3b4c5d6e7f8 (12 shards, 1,000,000 records), this one "
            "is 3f2a0b1c4d5e6f708192a3b4c5d6e7f0 (1 shard, 1,000,000 records)");
  now = {};
  now.view = R"({"kind":"documents"})";
  EXPECT_EQ(difference({}, now, 0), "view: saved windows, now documents");
  now = {};
  now.view = R"({"kind":"windows","lookahead":0,"window":4096})";
  EXPECT_EQ(difference({}, now, 0), "lookahead: saved 1, now 0");
  now = {};
  now.order = R"({"algorithm":1,"block":8,"fetch":64,"lanes":1,"name":"blocks","seed":1,"size":244})";
  EXPECT_EQ(difference({}, now, 0), "order: saved uniform, now blocks");
  Parts blocks = now;
  blocks.order = R"({"algorithm":2,"block":1024,"fetch":64,"lanes":1,"name":"blocks","seed":1,"size":244})";
  EXPECT_EQ(difference(blocks, now, 0), "order's algorithm: saved 2, now 1; order's block: saved 1,024, now 8");
  Parts drawn;
  drawn.order = R"({"algorithm":1,"draws":{"name":"uniform"},"name":"weighted","seed":1,"size":244,"table":"ab"})";
  now.order = R"({"algorithm":2,"draws":{"name":"uniform"},"name":"weighted","seed":1,"size":244,"table":"ab"})";
  EXPECT_EQ(
      difference(drawn, now, 0),
      "order's algorithm: saved 1, now 2: its draws are systematic: give draws=\"systematic\" to the order to end "
      "that run");
  EXPECT_EQ(difference(now, drawn, 0),
            "order's algorithm: saved 2, now 1: its draws are rounded: leave draws= of the order out to end that run");
  now = {};
  now.order = R"({"name":"sequential","size":244})";
  EXPECT_EQ(difference({}, now, 0), "order: saved uniform, now sequential");
}

TEST(Job, SkipsMatterBeforeThePositionOnly) {
  Parts now;
  now.skip = {{100, 200}};
  EXPECT_EQ(difference({}, now, 100), "");
  EXPECT_EQ(difference({}, now, 101), "skip before position 101: saved none, now (100, 101)");
  Parts saved;
  saved.skip = {{100, 150}, {150, 300}};
  EXPECT_EQ(difference(saved, now, 200), "");
  EXPECT_EQ(difference(saved, now, 201), "skip before position 201: saved (100, 201), now (100, 200)");
  saved.skip = {{1, 2}, {3, 4}, {5, 6}, {7, 8'000}};
  EXPECT_EQ(difference(saved, {}, 9'000),
            "skip before position 9,000: saved (1, 2), (3, 4), (5, 6), … (4 ranges), now none");
}

TEST(Job, StagesThatBeginAtOrAfterThePositionAreNoDifference) {
  Parts saved;
  Parts now;
  saved.order = R"({"name":"stages","stages":[{"begin":0,"seed":1}]})";
  now.order = R"({"name":"stages","stages":[{"begin":0,"seed":1},{"begin":100,"seed":2}]})";
  EXPECT_EQ(difference(saved, now, 0), "");
  EXPECT_EQ(difference(saved, now, 100), "");
  EXPECT_EQ(difference(now, saved, 100), "");
  EXPECT_NE(difference(saved, now, 101), "");
  now.order = R"({"name":"stages","stages":[{"begin":0,"seed":9}]})";
  EXPECT_NE(difference(saved, now, 0), "");  // the first stage decides at position 0 too
}

const SourceIdentity kA{kOldPrint, 1, 10, windows(16), ""};
const SourceIdentity kB{kNewPrint, 2, 20, windows(16), ""};
const SourceIdentity kC{kNewPrint, 2, 20, windows(32), ""};

std::string job_of(const std::string& order, const std::vector<SourceIdentity>& sources) {
  return job_json(FakeOrder(order), sources, {});
}

TEST(Job, SourcesAreComparedOneByOne) {
  EXPECT_EQ(job_difference(job_of(uniform(1), {kA, kB}), job_of(uniform(1), {kA}), 0),
            "number of sources: saved 2, now 1");
  EXPECT_EQ(job_difference(job_of(uniform(1), {kA, kB}), job_of(uniform(1), {kA, kC}), 0),
            "source 1: window: saved 16, now 32");
}

TEST(Job, ASourceThatOnlyALaterStageUsesIsNoDifference) {
  const auto stages = [](const std::string& list) { return R"({"name":"stages","stages":[)" + list + "]}"; };
  const std::string saved = job_of(stages(R"({"begin":0,"sources":[0]})"), {kA});
  const std::string added = job_of(stages(R"({"begin":0,"sources":[0]},{"begin":100,"sources":[0,1]})"), {kA, kB});
  const std::string other = job_of(stages(R"({"begin":0,"sources":[0]},{"begin":100,"sources":[0,1]})"), {kA, kC});
  for (const std::uint64_t position : {0, 50, 100}) {
    EXPECT_EQ(job_difference(saved, added, position), std::nullopt);
    EXPECT_EQ(job_difference(added, saved, position), std::nullopt);
    EXPECT_EQ(job_difference(added, other, position), std::nullopt) << "a window of a later stage";
  }
  EXPECT_NE(job_difference(saved, added, 101).value_or("").find("number of sources: saved 1, now 2"),
            std::string::npos);
  EXPECT_EQ(job_difference(added, other, 101), "source 1: window: saved 16, now 32");
}

TEST(Job, NamedSourcesAreComparedByTheirNamesWhateverTheirNumbers) {
  const auto named = [](SourceIdentity source, const char* name) {
    source.name = name;
    return source;
  };
  const std::string order = R"({"name":"stages","stages":[{"begin":0,"sources":["wiki","code"]}]})";
  const std::string saved = job_of(order, {named(kA, "wiki"), named(kB, "code")});
  EXPECT_EQ(job_difference(saved, job_of(order, {named(kB, "code"), named(kC, "later"), named(kA, "wiki")}), 10),
            std::nullopt);
  EXPECT_EQ(job_difference(saved, job_of(order, {named(kA, "wiki"), named(kC, "code")}), 10),
            "source code: window: saved 16, now 32");
}

TEST(Job, StagesAndSourcesOfAMixtureAreToldApart) {
  const auto named = [](SourceIdentity source, const char* name) {
    source.name = name;
    return source;
  };
  const auto order = [](const std::string& stages, const std::string& orders = R"("a":{"seed":1,"size":9})",
                        const std::string& seed = "7") {
    return R"({"name":"mixture","orders":{)" + orders + R"(},"seed":)" + seed + R"(,"stages":[)" + stages + "]}";
  };
  const std::string first = R"({"begin":0,"sources":["a","b"],"weights":[3,1]})";
  const std::vector<SourceIdentity> sources{named(kA, "a"), named(kB, "b")};
  const std::string saved = job_of(order(first + R"(,{"begin":80,"sources":["a"],"weights":[1]})"), sources);
  EXPECT_EQ(job_difference(saved, job_of(order(first), sources), 80), std::nullopt);
  EXPECT_EQ(job_difference(saved, job_of(order(first), sources), 90),
            "stage 1: saved a 1 from position 80, now no such stage; 10 observations had been given from there on");
  EXPECT_EQ(
      job_difference(saved, job_of(order(R"({"begin":0,"sources":["a","b"],"weights":[2,1]})"), sources), 90),
      "stage 0: saved a 3, b 1 from position 0, now a 2, b 1 from position 0; 80 observations had been given from "
      "there on");
  EXPECT_EQ(job_difference(saved, job_of(order(first), {named(kA, "a"), named(kC, "b")}), 40),
            "source b: window: saved 16, now 32; about 10 observations of it had been given");
  const std::string alone = R"({"begin":0,"sources":["a"],"weights":[1]})";
  EXPECT_EQ(job_difference(saved, job_of(order(alone), {named(kA, "a")}), 40)
                .value_or("")
                .find("source b: saved, but not of the job now; about 10 observations of it had been given; stage 0: "),
            0U);
  EXPECT_EQ(job_difference(saved, job_of(order(first, R"("a":{"seed":2,"size":9})", "8"), sources), 40),
            "seed: saved 7, now 8");
  EXPECT_EQ(job_difference(saved, job_of(order(first, R"("a":{"block":4,"seed":1,"size":9})"), sources), 40),
            "source a: order's block: saved none, now 4");
  EXPECT_NE(job_difference(saved, job_of(order(R"({"begin":0,"sources":7,"weights":"x"})"), sources), 40),
            std::nullopt);
  const auto cut = [&](const char* rest) {
    return job_of(order(fmt::format(R"({{"begin":0,"sources":["a","b"],"weights":[3,1],"window":4,{}}})", rest)),
                  sources);
  };
  EXPECT_EQ(
      job_difference(cut(R"("group":64,"unit":8)"), cut(R"("group":128,"unit":9)"), 40),
      "stage 0: saved a 3, b 1 in windows of 4 from position 0, group 64, unit 8, now a 3, b 1 in windows of 4 from "
      "position 0, group 128, unit 9; 40 observations had been given from there on");
  const auto ended = [&](const char* end) {
    return job_of(order(first + fmt::format(R"(,{{"begin":80,"end":{},"sources":[],"weights":[]}})", end)), sources);
  };
  EXPECT_EQ(job_difference(ended("1200"), ended("1300"), 80), std::nullopt);
  EXPECT_EQ(job_difference(ended("1200"), ended("1300"), 90),
            "stage 1: saved the run's end at position 1,200, by which the group from 80 is mixed, now the run's end at "
            "position 1,300, by which the group from 80 is mixed; 10 observations had been given from there on");
  EXPECT_EQ(job_difference(ended("1200"), job_of(order(first), {named(kA, "a"), named(kC, "b")}), 100)
                .value_or("")
                .find("source b: window: saved 16, now 32; about 25 observations of it had been given; stage 1"),
            0U)
      << "the last group has its stage's weights";
}

TEST(Job, OfAMixtureNothingHasBeenGivenAtPosition0) {
  const auto named = [](SourceIdentity source, const char* name) {
    source.name = name;
    return source;
  };
  const auto job = [](const std::string& stages, const std::vector<SourceIdentity>& sources, int seed = 7) {
    return job_of(
        fmt::format(R"({{"name":"mixture","orders":{{"a":{{"size":9}}}},"seed":{},"stages":[{}]}})", seed, stages),
        sources);
  };
  const std::string saved = job(R"({"begin":0,"sources":["a","b"],"weights":[3,1]})", {named(kA, "a"), named(kB, "b")});
  const std::string other = R"({"begin":0,"sources":["a","c"],"weights":[2,1]})";
  EXPECT_EQ(job_difference(saved, job(other, {named(kA, "a"), named(kC, "c")}), 0), std::nullopt);
  EXPECT_NE(job_difference(saved, job(other, {named(kA, "a"), named(kC, "c")}), 1), std::nullopt);
  const std::string all_others = job(other, {named(kB, "a"), named(kC, "c")});
  EXPECT_EQ(job_difference(saved, all_others, 0), std::nullopt) << "another dataset of a source that stays";
  EXPECT_EQ(job_difference(saved, all_others, 1).value_or("").find("source a: dataset"), 0U);
  const std::string in_blocks = job_of(
      R"({"name":"mixture","orders":{"a":{"block":4}},"seed":7,"stages":[{"begin":0,"sources":["a"],"weights":[1]}]})",
      {named(kA, "a")});
  EXPECT_EQ(job_difference(saved, in_blocks, 0), std::nullopt) << "another order of it";
  EXPECT_EQ(job_difference(saved, job_of(uniform(7), {kA}), 0).value_or("").find("number of sources"), 0U)
      << "one dataset is no mixture";
  EXPECT_EQ(job_difference(saved, job(other, {named(kA, "a"), named(kC, "c")}, 8), 0), "seed: saved 7, now 8");
}

TEST(Job, WhatALaterVersionAddsIsADifferenceRatherThanIgnored) {
  nlohmann::json later = nlohmann::json::parse(job({}));
  later["packing"] = 2;
  EXPECT_EQ(job_difference(later.dump(), job({}), 0), "packing: saved 2, now none");
}

bool is_refused(const nlohmann::json& saved, const std::string& now, std::uint64_t position) {
  try {
    return job_difference(saved.dump(), now, position).has_value();
  } catch (const Error&) {
    return true;
  }
}

// Each object gets a member more, and each value goes, or becomes one of another type.
void expect_every_change_is_refused(const std::string& text, std::uint64_t position) {
  using nlohmann::json;
  const json good = json::parse(text);
  ASSERT_FALSE(is_refused(json::parse(good.dump(1)), text, position));
  const auto try_with = [&](const json::json_pointer& at, const auto& change) {
    json changed = good;
    change(changed);
    EXPECT_TRUE(is_refused(changed, text, position)) << at.to_string() << " in " << changed.dump();
  };
  const std::function<void(const json::json_pointer&)> walk = [&](const json::json_pointer& at) {
    const json& value = good.at(at);
    if (value.is_object()) try_with(at, [&](json& root) { root[at]["unknown"] = 1; });
    for (const json& other : {json("7"), json(7.5), json(nullptr), json({{"a", 1}}), json({1, 2, 3})}) {
      if (other != value) try_with(at, [&](json& root) { root[at] = other; });
    }
    if (value.is_number()) try_with(at, [&](json& root) { root[at] = value.get<double>(); });
    if (!at.empty()) {
      try_with(at, [&](json& root) {
        json& parent = root[at.parent_pointer()];
        if (parent.is_array()) {
          parent.erase(std::stoul(at.back()));
        } else {
          parent.erase(at.back());
        }
      });
    }
    if (!value.is_structured()) return;
    for (const auto& [key, each] : value.items()) {
      walk(value.is_array() ? at / static_cast<std::size_t>(std::stoul(key)) : at / key);
    }
  };
  walk(json::json_pointer());
}

TEST(Job, WhatIsAddedLeftOutOrOfAnotherTypeIsRefusedAtEveryLevel) {
  Parts blocks;
  blocks.order =
      R"({"algorithm":1,"block":8,"draws":{"name":"uniform","seed":1},"name":"weighted","seed":1,"size":244})";
  blocks.skip = {{3, 5}, {8, 9}};
  expect_every_change_is_refused(job(blocks), 50);
  const auto named = [](SourceIdentity source, const char* name) {
    source.name = name;
    return source;
  };
  const std::string order =
      R"({"algorithm":1,"name":"mixture","seed":7,
          "orders":{"a":{"name":"uniform","seed":1,"size":9},"b":{"name":"sequential","size":9}},
          "stages":[{"begin":0,"sources":["a"],"weights":[1]},{"begin":40,"sources":["a","b"],"weights":[3,1]}]})";
  expect_every_change_is_refused(job_of(order, {named(kA, "a"), named(kB, "b")}), 90);
  const nlohmann::json source = nlohmann::json::parse(job_of(uniform(1), {kA}))["sources"][0];
  const std::string grown = fmt::format(
      R"({{"name":"grown","stages":[{{"begin":0,"order":{0},"source":{1}}},{{"begin":20,"order":{0},"source":{1}}}]}})",
      uniform(1), source.dump());
  expect_every_change_is_refused(job_of(grown, {kA}), 90);
}

TEST(Job, WhatOnlyLaterStagesUseMayBeLeftOut) {
  const auto named = [](SourceIdentity source, const char* name) {
    source.name = name;
    return source;
  };
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
    EXPECT_EQ(job_difference(saved, whole, 40), std::nullopt);
    EXPECT_NE(job_difference(saved, whole, 41), std::nullopt);
  }
  EXPECT_EQ(job_difference(without_source, whole, 41),
            "source b: the saved stages use it, and the state says nothing of it");
  EXPECT_EQ(job_difference(without_order, whole, 41), "source b: order: saved none, now {\"size\":5}");
}

TEST(Job, WhatIsUnknownOfSourcesThatOnlyLaterStagesUseIsRefused) {
  const auto named = [](SourceIdentity source, const char* name) {
    source.name = name;
    return source;
  };
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
    ASSERT_FALSE(is_refused(good, now, position)) << "another view of a source that nothing was given of";
    for (const char* at : {"/sources/0", "/sources/0/dataset", "/sources/0/view", "/sources/1", "/sources/1/dataset",
                           "/sources/1/view"}) {
      nlohmann::json changed = good;
      changed[nlohmann::json::json_pointer(at)]["unknown"] = 1;
      EXPECT_TRUE(is_refused(changed, now, position)) << at << " at position " << position;
    }
    nlohmann::json changed = good;
    changed["sources"][1]["view"]["kind"] = "unknown";
    EXPECT_TRUE(is_refused(changed, now, position));
    changed = good;
    changed["sources"].push_back(good["sources"][1]);
    changed["sources"][2]["name"] = "c";
    EXPECT_FALSE(is_refused(changed, now, position)) << "a source that no stage uses decides nothing";
    changed["sources"][2]["unknown"] = 1;
    EXPECT_TRUE(is_refused(changed, now, position));
  }
}

std::optional<ErrorKind> refused_as(const std::string& saved, std::string* message = nullptr) {
  try {
    static_cast<void>(job_difference(saved, job({}), 10));
  } catch (const Error& error) {
    if (message != nullptr) *message = error.what();
    return error.kind();
  }
  return std::nullopt;
}

TEST(Job, TextThatIsNoJobIsRefused) {
  for (const char* text : {"", "{", "nonsense", "{\"format\":1,\"format\":1}"}) {
    EXPECT_EQ(refused_as(text), ErrorKind::InvalidArgument) << text;
  }
  for (const char* text :
       {"null", "[]", "{}", "7", R"({"format":"1"})", R"({"format":1})",
        R"({"format":1,"order":{},"skip":[],"sources":[]})", R"({"format":1,"order":{},"skip":[],"sources":[{}]})",
        R"({"format":1,"order":{},"skip":[[5,4]],"sources":[]})"}) {
    EXPECT_EQ(refused_as(text), ErrorKind::StateMismatch) << text;
  }
  nlohmann::json later = nlohmann::json::parse(job({}));
  later["format"] = 2;
  std::string message;
  EXPECT_EQ(refused_as(later.dump(), &message), ErrorKind::StateMismatch);
  EXPECT_EQ(message, "the state's job is not one that this penstock knows: format 2, this penstock reads format 1");
  later = nlohmann::json::parse(job({}));
  later["skip"] = {{5, 4}};
  EXPECT_EQ(refused_as(later.dump()), ErrorKind::StateMismatch);
  later["skip"] = {{-5, 4}};
  EXPECT_EQ(refused_as(later.dump()), ErrorKind::StateMismatch);
}

TEST(Job, HostileTextIsRefusedOrDiffersButNeverCrashes) {
  Parts parts;
  parts.skip = {{1, 5}, {8, 9}};
  parts.order = R"({"name":"stages","seed":3,"stages":[{"begin":0,"seed":1},{"begin":100,"seed":2}]})";
  const std::string good = job(parts);
  const char* const pieces[] = {"null",        "[]",           "{}", "-1", "1e300", "18446744073709551615",
                                "\"\\u0000\"", "\"\xc3\xa9\"", ",",  "\""};
  std::mt19937 random(5);
  int refused = 0;
  int differ = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text = good;
    for (unsigned k = 0; k <= random() % 3; ++k) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0: text[at] = static_cast<char>(random()); break;
        case 1: text.erase(at, random() % 12); break;
        case 2: text.replace(at, random() % 4, pieces[random() % 10]); break;
        default: text[at] = static_cast<char>('0' + random() % 10);
      }
      if (text.empty()) text = "{}";
    }
    try {
      differ += job_difference(text, good, random() % 200) ? 1 : 0;
    } catch (const Error& error) {
      ASSERT_TRUE(error.kind() == ErrorKind::InvalidArgument || error.kind() == ErrorKind::StateMismatch) << text;
      ++refused;
    }
  }
  EXPECT_GT(refused, 1'000);
  EXPECT_GT(differ, 1'000);
}

}  // namespace
}  // namespace penstock
