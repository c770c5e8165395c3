#include "core/job/carry_over.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace penstock {
namespace {

std::string views_job(const std::string& views) {
  return fmt::format(R"({{"sources":[{}]}})", views);
}

std::string windows_job(std::uint64_t window) {
  return views_job(fmt::format(R"({{"view":{{"kind":"windows","lookahead":1,"window":{}}}}})", window));
}

TEST(CarryOverTest, WindowsOfAnotherSizeKeepTheRecords) {
  EXPECT_EQ(carry_over(windows_job(10), windows_job(40), 103).position, 25U);
  EXPECT_EQ(carry_over(windows_job(40), windows_job(10), 25).position, 100U);
  EXPECT_EQ(carry_over(windows_job(10), windows_job(10), 103).position, 103U);
  EXPECT_FALSE(carry_over(windows_job(1ULL << 40), windows_job(3), 1ULL << 60).position);  // beyond 2^63
  const CarryOver carried = carry_over(windows_job(1'024), windows_job(4'096), 8);
  EXPECT_EQ(carried.position, 2U);
  EXPECT_EQ(carried.saved_unit, "windows of 1,024");
  EXPECT_EQ(carried.unit, "windows of 4,096");
}

std::string staged(const std::string& stages) {
  return fmt::format(R"({{"order":{{"stages":[{}]}},"sources":[{{"view":{{"kind":"windows","window":64}}}}]}})",
                     stages);
}

TEST(CarryOverTest, WindowsOfStagesKeepTheRecordsToo) {
  const std::string whole = staged(R"({"begin":0})");
  const std::string shorter = staged(R"({"begin":0,"window":16},{"begin":400,"window":32},{"begin":500})");
  const std::string later = staged(R"({"begin":0,"window":16},{"begin":600})");
  EXPECT_EQ(carry_over(shorter, whole, 403).position, 101U);  // 400 of 16 and 3 of 32
  EXPECT_EQ(carry_over(shorter, whole, 502).position, 152U);
  EXPECT_EQ(carry_over(whole, shorter, 101).position, 402U);
  EXPECT_EQ(carry_over(whole, shorter, 152).position, 502U);
  EXPECT_EQ(carry_over(whole, shorter, 100).position, 400U);
  EXPECT_EQ(carry_over(windows_job(64), shorter, 101).position, 402U) << "an order without stages";
  EXPECT_EQ(carry_over(shorter, later, 300).position, 300U);
  EXPECT_EQ(carry_over(shorter, later, 450).position, 500U);
  EXPECT_EQ(carry_over(later, shorter, 601).position, 501U);
  EXPECT_EQ(carry_over(shorter, shorter, 450).position, 450U);
  EXPECT_EQ(carry_over(shorter, whole, 1).saved_unit, "windows of 16 and 32 and 64");
  EXPECT_EQ(carry_over(whole, shorter, 1).saved_unit, "windows of 64");
  EXPECT_FALSE(carry_over(whole, staged(R"({"begin":0,"window":1})"), std::uint64_t{1} << 60).position);
  // What no penstock wrote is read as far as it says something.
  const std::string strange = staged(R"(7,{"begin":"x","window":-1},{"begin":5,"window":16},{"begin":2,"window":8})");
  EXPECT_EQ(carry_over(strange, whole, 9).position, 6U);
}

TEST(CarryOverTest, ObservationsOfOneKindAreOfNoOther) {
  const std::string documents = views_job(R"({"view":{"kind":"documents"}})");
  const std::string collection = views_job(R"({"view":{"kind":"collection"}})");
  const std::string strange = views_job(R"({"view":{"kind":5,"window":10}})");
  for (const std::string& job : {documents, collection, strange}) {
    EXPECT_EQ(carry_over(job, job, 7).position, 7U) << job;
    EXPECT_FALSE(carry_over(job, windows_job(10), 7).position) << job;
    EXPECT_FALSE(carry_over(windows_job(10), job, 7).position) << job;
  }
  EXPECT_FALSE(carry_over(collection, documents, 7).position);
  EXPECT_EQ(carry_over(collection, documents, 7).saved_unit, "observations of a collection");
  for (const char* views : {R"({"view":{"kind":"windows","window":0}})", R"({"view":{"kind":"windows","window":-4}})",
                            R"({"view":{"kind":"windows","window":4}},{"view":{"kind":"windows","window":8}})"}) {
    EXPECT_FALSE(carry_over(views_job(views), windows_job(4), 7).position) << views;
  }
}

}  // namespace
}  // namespace penstock
