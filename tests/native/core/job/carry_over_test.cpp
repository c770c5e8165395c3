#include "core/job/carry_over.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace penstock {
namespace {

std::string job(const std::string& views) {
  return fmt::format(R"({{"sources":[{}]}})", views);
}

std::string windows(std::uint64_t window) {
  return job(fmt::format(R"({{"view":{{"kind":"windows","lookahead":1,"window":{}}}}})", window));
}

const std::string kDocuments = job(R"({"view":{"kind":"documents"}})");

TEST(CarryOverTest, WindowsOfAnotherSizeKeepTheRecords) {
  EXPECT_EQ(carry_over(windows(10), windows(40), 103).position, 25U);
  EXPECT_EQ(carry_over(windows(40), windows(10), 25).position, 100U);
  EXPECT_EQ(carry_over(windows(10), windows(10), 103).position, 103U);
  EXPECT_FALSE(carry_over(windows(1ULL << 40), windows(3), 1ULL << 60).position);  // beyond 2^63
  const CarryOver carried = carry_over(windows(1'024), windows(4'096), 8);
  EXPECT_EQ(carried.position, 2U);
  EXPECT_EQ(carried.saved_unit, "windows of 1,024");
  EXPECT_EQ(carried.unit, "windows of 4,096");
}

TEST(CarryOverTest, DocumentsAreNoWindows) {
  EXPECT_EQ(carry_over(kDocuments, kDocuments, 7).position, 7U);
  EXPECT_FALSE(carry_over(kDocuments, windows(10), 7).position);
  EXPECT_FALSE(carry_over(windows(10), kDocuments, 7).position);
}

TEST(CarryOverTest, ObservationsOfACollectionAreOfNoOtherKind) {
  const std::string collection = job(R"({"view":{"kind":"collection"}})");
  EXPECT_EQ(carry_over(collection, collection, 7).position, 7U);
  EXPECT_EQ(carry_over(collection, kDocuments, 7).saved_unit, "observations of a collection");
  EXPECT_FALSE(carry_over(collection, kDocuments, 7).position);
  EXPECT_FALSE(carry_over(windows(10), collection, 7).position);
}

TEST(CarryOverTest, WhatIsNotKnownIsNotComparedWithWindows) {
  const std::string strange = job(R"({"view":{"kind":5,"window":10}})");
  EXPECT_FALSE(carry_over(strange, windows(10), 7).position);
  EXPECT_FALSE(carry_over(job(R"({"view":{"kind":"windows","window":0}})"), windows(10), 7).position);
  EXPECT_FALSE(carry_over(job(R"({"view":{"kind":"windows","window":-4}})"), windows(10), 7).position);
  EXPECT_EQ(carry_over(strange, strange, 7).position, 7U);
  const std::string mixed = job(R"({"view":{"kind":"windows","window":4}},{"view":{"kind":"windows","window":8}})");
  EXPECT_FALSE(carry_over(mixed, windows(4), 7).position);
}

}  // namespace
}  // namespace penstock
