#include "core/job/state.h"

#include "core/base/error.h"
#include "tests/native/core/job/saved_job.h"
#include "tests/native/message_of.h"

#include <gtest/gtest.h>

#include <random>

namespace penstock::testing {
namespace {

struct JobParts {
  std::string order = uniform(1);
  std::string fingerprint = kOldPrint;
  std::uint64_t shards = 12;
  std::uint64_t records = 1'000'000;
  std::string view = windows(4'096);
  Ranges skip = {};
};

std::string job(const JobParts& parts) {
  const SourceIdentity source{parts.fingerprint, parts.shards, parts.records, parts.view, ""};
  return job_json(TextOrder(parts.order), std::span(&source, 1), parts.skip);
}

TEST(Job, TheTextIsCanonical) {
  const JobParts parts{.order = R"({ "seed": 1, "name": "uniform" })",  // not canonical itself
                       .skip = {{50, 60}, {10, 20}, {20, 25}, {30, 30}}};
  EXPECT_EQ(job(parts), R"({"format":1,"order":{"name":"uniform","seed":1},"skip":[[10,25],[50,60]],)"
                        R"("sources":[{"dataset":{"fingerprint":"3f2a0b1c4d5e6f708192a3b4c5d6e7f8","records":1000000,)"
                        R"("shards":12},"view":{"kind":"windows","lookahead":1,"window":4096}}]})");
  EXPECT_EQ(difference_of(nlohmann::json::parse(job({})).dump(2), job({}), 7), std::nullopt) << "written otherwise";
}

/// None: "".
std::string difference(const JobParts& saved, const JobParts& now, std::uint64_t position = 0) {
  return difference_of(job(saved), job(now), position).value_or("");
}

TEST(Job, TheSameJobHasNoDifferenceAndAllThatDiffersIsNamedAlsoAtPositionZero) {
  EXPECT_EQ(difference({}, {}), "");
  EXPECT_EQ(difference({}, {}, 1'000'000), "");
  EXPECT_EQ(difference({}, {.shards = 3}, 5), "") << "the same records in other shards";
  for (const std::uint64_t position : {0, 1'000}) {
    EXPECT_EQ(difference({}, {uniform(2, 500), kNewPrint, 13, 1'100'000, windows(2'048)}, position),
              "dataset: the state was saved on 3f2a0b1c… (12 shards, 1,000,000 records), this one is 9b1c0b1c… "
              "(13 shards, 1,100,000 records); window: saved 4,096, now 2,048; seed: saved 1, now 2");
  }
}

TEST(Job, EachPartIsADifferenceAlone) {
  EXPECT_EQ(difference({}, {.order = uniform(12'345)}), "seed: saved 1, now 12345");
  EXPECT_EQ(difference({}, {.fingerprint = std::string(kOldPrint).replace(31, 1, "0"), .shards = 1}),
            "dataset: the state was saved on 3f2a0b1c4d5e6f708192a3b4c5d6e7f8 (12 shards, 1,000,000 records), this one "
            "is 3f2a0b1c4d5e6f708192a3b4c5d6e7f0 (1 shard, 1,000,000 records)");
  const std::string collection = R"({"kind":"collection"})";
  EXPECT_EQ(difference({uniform(1), kOldPrint, 0, 1'000, collection}, {uniform(1), kNewPrint, 0, 900, collection}),
            "dataset: the state was saved on 3f2a0b1c… (1,000 observations), this one is 9b1c0b1c… (900 observations)");
  EXPECT_EQ(difference({}, {.view = R"({"kind":"documents"})"}), "view: saved windows, now documents");
  EXPECT_EQ(difference({}, {.view = R"({"kind":"windows","lookahead":0,"window":4096})"}), "lookahead: saved 1, now 0");
  const JobParts blocks{R"({"algorithm":1,"block":8,"fetch":64,"lanes":1,"name":"blocks","seed":1,"size":244})"};
  const JobParts old{R"({"algorithm":2,"block":1024,"fetch":64,"lanes":1,"name":"blocks","seed":1,"size":244})"};
  EXPECT_EQ(difference({}, blocks), "order: saved uniform, now blocks");
  EXPECT_EQ(difference(old, blocks), "order's algorithm: saved 2, now 1; order's block: saved 1,024, now 8");
  EXPECT_EQ(difference({}, {R"({"name":"sequential","size":244})"}), "order: saved uniform, now sequential");
}

TEST(Job, SkipsMatterBeforeThePositionOnly) {
  const JobParts one{.skip = {{100, 200}}};
  const JobParts two{.skip = {{100, 150}, {150, 300}}};
  EXPECT_EQ(difference({}, one, 100), "");
  EXPECT_EQ(difference({}, one, 101), "skip before position 101: saved none, now (100, 101)");
  EXPECT_EQ(difference(two, one, 200), "");
  EXPECT_EQ(difference(two, one, 201), "skip before position 201: saved (100, 201), now (100, 200)");
  EXPECT_EQ(difference({.skip = {{1, 2}, {3, 4}, {5, 6}, {7, 8'000}}}, {}, 9'000),
            "skip before position 9,000: saved (1, 2), (3, 4), (5, 6), … (4 ranges), now none");
}

TEST(Job, StagesThatBeginAtOrAfterThePositionAreNoDifference) {
  const JobParts one{R"({"name":"stages","stages":[{"begin":0,"seed":1}]})"};
  const JobParts two{R"({"name":"stages","stages":[{"begin":0,"seed":1},{"begin":100,"seed":2}]})"};
  EXPECT_EQ(difference(one, two, 0), "");
  EXPECT_EQ(difference(one, two, 100), "");
  EXPECT_EQ(difference(two, one, 100), "");
  EXPECT_NE(difference(one, two, 101), "");
  EXPECT_NE(difference(one, {R"({"name":"stages","stages":[{"begin":0,"seed":9}]})"}, 0), "")
      << "the first stage decides at position 0 too";
}

TEST(Job, SourcesAreComparedOneByOne) {
  EXPECT_EQ(difference_of(job_of(uniform(1), {kA, kB}), job_of(uniform(1), {kA}), 0),
            "number of sources: saved 2, now 1");
  EXPECT_EQ(difference_of(job_of(uniform(1), {kA, kB}), job_of(uniform(1), {kA, kC}), 0),
            "source 1: window: saved 16, now 32");
}

TEST(Job, WhatALaterVersionAddsIsADifferenceRatherThanIgnored) {
  nlohmann::json later = nlohmann::json::parse(job({}));
  later["packing"] = 2;
  EXPECT_EQ(difference_of(later.dump(), job({}), 0), "packing: saved 2, now none");
}

TEST(Job, WhatIsAddedLeftOutOrOfAnotherTypeIsRefusedAtEveryLevel) {
  const char* const weighted =
      R"({"algorithm":1,"block":8,"draws":{"name":"uniform","seed":1},"name":"weighted","seed":1,"size":244})";
  expect_every_change_is_refused(job({.order = weighted, .skip = {{3, 5}, {8, 9}}}), 50);
  const nlohmann::json source = nlohmann::json::parse(job_of(uniform(1), {kA}))["sources"][0];
  const std::string grown = fmt::format(
      R"({{"name":"grown","stages":[{{"begin":0,"order":{0},"source":{1}}},{{"begin":20,"order":{0},"source":{1}}}]}})",
      uniform(1), source.dump());
  expect_every_change_is_refused(job_of(grown, {kA}), 90);
}

TEST(Job, TextThatIsNoJobIsRefused) {
  const auto expect_refused = [](const std::string& saved, ErrorKind kind, const std::string& words = "") {
    SCOPED_TRACE(saved);
    expect_error([&] { static_cast<void>(difference_of(saved, job({}), 10)); }, kind, words);
  };
  for (const char* text : {"", "{", "nonsense", "{\"format\":1,\"format\":1}"}) {
    expect_refused(text, ErrorKind::InvalidArgument);
  }
  for (const char* text :
       {"null", "[]", "{}", "7", R"({"format":"1"})", R"({"format":1})",
        R"({"format":1,"order":{},"skip":[],"sources":[]})", R"({"format":1,"order":{},"skip":[],"sources":[{}]})",
        R"({"format":1,"order":{},"skip":[[5,4]],"sources":[]})"}) {
    expect_refused(text, ErrorKind::StateMismatch);
  }
  const auto with = [](const char* key, const char* value) {
    nlohmann::json changed = nlohmann::json::parse(job({}));
    changed[key] = nlohmann::json::parse(value);
    return changed.dump();
  };
  expect_refused(with("format", "2"), ErrorKind::StateMismatch,
                 "the state's job is not one that this penstock knows: job: the format is not that of its order");
  expect_refused(with("format", "3"), ErrorKind::StateMismatch,
                 "the state's job is not one that this penstock knows: format 3, this penstock reads formats 1 and 2");
  expect_refused(with("skip", "[[5,4]]"), ErrorKind::StateMismatch);
  expect_refused(with("skip", "[[-5,4]]"), ErrorKind::StateMismatch);
}

TEST(Job, HostileTextIsRefusedOrDiffersButNeverCrashes) {
  const std::string good =
      job({.order = R"({"name":"stages","seed":3,"stages":[{"begin":0,"seed":1},{"begin":100,"seed":2}]})",
           .skip = {{1, 5}, {8, 9}}});
  const char* const pieces[] = {"null",        "[]",           "{}", "-1", "1e300", "18446744073709551615",
                                "\"\\u0000\"", "\"\xc3\xa9\"", ",",  "\""};
  std::mt19937 random(5);
  int refused = 0;
  int differ = 0;
  for (int i = 0; i < 6'000; ++i) {
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
      differ += difference_of(text, good, random() % 200) ? 1 : 0;
    } catch (const Error& error) {
      ASSERT_TRUE(error.kind() == ErrorKind::InvalidArgument || error.kind() == ErrorKind::StateMismatch) << text;
      ++refused;
    }
  }
  EXPECT_GT(refused, 300);
  EXPECT_GT(differ, 300);
}

}  // namespace
}  // namespace penstock::testing
