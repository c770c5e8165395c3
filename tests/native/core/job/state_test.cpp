#include "core/job/state.h"

#include "core/base/error.h"
#include "core/base/json.h"
#include "tests/native/core/job/saved_job.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace penstock::testing {
namespace {

struct JobParts {
  std::string order = uniform(1);
  std::string fingerprint = kOldPrint;
  std::uint64_t shards = 12;
  std::uint64_t records = 1'000'000;
  std::string view = windows(4'096);
  Ranges skip;
};

std::string job(const JobParts& parts) {
  const SourceIdentity source{parts.fingerprint, parts.shards, parts.records, parts.view, ""};
  return job_json(TextOrder(parts.order), std::span(&source, 1), parts.skip);
}

std::string difference(const JobParts& saved, const JobParts& now, std::uint64_t position) {
  return difference_of(job(saved), job(now), position).value_or("");
}

TEST(Job, TheTextIsCanonical) {
  JobParts parts;
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
  JobParts moved;
  moved.shards = 3;
  EXPECT_EQ(difference({}, moved, 5), "");
  EXPECT_EQ(difference_of(nlohmann::json::parse(job({})).dump(2), job({}), 7), std::nullopt);
}

TEST(Job, AllThatDiffersIsNamedAlsoAtPositionZero) {
  JobParts now;
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
  JobParts saved;
  saved.shards = 0;
  saved.records = 1'000;
  saved.view = R"({"kind":"collection"})";
  JobParts now = saved;
  now.fingerprint = kNewPrint;
  now.records = 900;
  EXPECT_EQ(difference(saved, now, 0),
            "dataset: the state was saved on 3f2a0b1c… (1,000 observations), this one is 9b1c0b1c… (900 observations)");
}

TEST(Job, EachPartIsADifferenceAlone) {
  JobParts now;
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
  JobParts blocks = now;
  blocks.order = R"({"algorithm":2,"block":1024,"fetch":64,"lanes":1,"name":"blocks","seed":1,"size":244})";
  EXPECT_EQ(difference(blocks, now, 0), "order's algorithm: saved 2, now 1; order's block: saved 1,024, now 8");
  now = {};
  now.order = R"({"name":"sequential","size":244})";
  EXPECT_EQ(difference({}, now, 0), "order: saved uniform, now sequential");
}

TEST(Job, SkipsMatterBeforeThePositionOnly) {
  JobParts now;
  now.skip = {{100, 200}};
  EXPECT_EQ(difference({}, now, 100), "");
  EXPECT_EQ(difference({}, now, 101), "skip before position 101: saved none, now (100, 101)");
  JobParts saved;
  saved.skip = {{100, 150}, {150, 300}};
  EXPECT_EQ(difference(saved, now, 200), "");
  EXPECT_EQ(difference(saved, now, 201), "skip before position 201: saved (100, 201), now (100, 200)");
  saved.skip = {{1, 2}, {3, 4}, {5, 6}, {7, 8'000}};
  EXPECT_EQ(difference(saved, {}, 9'000),
            "skip before position 9,000: saved (1, 2), (3, 4), (5, 6), … (4 ranges), now none");
}

TEST(Job, StagesThatBeginAtOrAfterThePositionAreNoDifference) {
  JobParts saved;
  JobParts now;
  saved.order = R"({"name":"stages","stages":[{"begin":0,"seed":1}]})";
  now.order = R"({"name":"stages","stages":[{"begin":0,"seed":1},{"begin":100,"seed":2}]})";
  EXPECT_EQ(difference(saved, now, 0), "");
  EXPECT_EQ(difference(saved, now, 100), "");
  EXPECT_EQ(difference(now, saved, 100), "");
  EXPECT_NE(difference(saved, now, 101), "");
  now.order = R"({"name":"stages","stages":[{"begin":0,"seed":9}]})";
  EXPECT_NE(difference(saved, now, 0), "");  // the first stage decides at position 0 too
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
  JobParts blocks;
  blocks.order =
      R"({"algorithm":1,"block":8,"draws":{"name":"uniform","seed":1},"name":"weighted","seed":1,"size":244})";
  blocks.skip = {{3, 5}, {8, 9}};
  expect_every_change_is_refused(job(blocks), 50);
  const nlohmann::json source = nlohmann::json::parse(job_of(uniform(1), {kA}))["sources"][0];
  const std::string grown = fmt::format(
      R"({{"name":"grown","stages":[{{"begin":0,"order":{0},"source":{1}}},{{"begin":20,"order":{0},"source":{1}}}]}})",
      uniform(1), source.dump());
  expect_every_change_is_refused(job_of(grown, {kA}), 90);
}

std::optional<ErrorKind> refused_as(const std::string& saved, std::string* message = nullptr) {
  try {
    static_cast<void>(difference_of(saved, job({}), 10));
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
  JobParts parts;
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
      differ += difference_of(text, good, random() % 200) ? 1 : 0;
    } catch (const Error& error) {
      ASSERT_TRUE(error.kind() == ErrorKind::InvalidArgument || error.kind() == ErrorKind::StateMismatch) << text;
      ++refused;
    }
  }
  EXPECT_GT(refused, 1'000);
  EXPECT_GT(differ, 1'000);
}

}  // namespace
}  // namespace penstock::testing
