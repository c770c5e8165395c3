#include "writer/buckets.h"

#include "core/base/error.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace penstock::writer {
namespace {

constexpr std::uint64_t kDestinations = 500;

struct Put {
  std::uint64_t destination = 0;
  std::string entry;
  std::string records;
  bool operator==(const Put&) const = default;
};

class BucketsTest : public ::testing::Test {
 protected:
  BucketsTest() : folder_(::testing::TempDir() + "penstock_buckets_" + std::to_string(::getpid())) {
    std::filesystem::create_directories(folder_);
    std::mt19937 random(4);
    for (std::uint64_t i = 0; i < 1200; ++i) {  // several to some destinations, in any order, few of them large
      const std::size_t bytes = i % 300 == 5 ? 20'000 : random() % 200;
      items_.push_back({random() % kDestinations, std::string(bytes / 3, static_cast<char>(i)),
                        std::string(bytes / 2 * 2, static_cast<char>(i + 1))});
    }
  }
  ~BucketsTest() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] BucketPlan plan() const {
    BucketPlanner planner(0, kDestinations, BucketPlanner::kLeastMemory);
    for (const Put& each : items_) planner.add(each.destination, each.entry.size() + each.records.size());
    return planner.plan();
  }

  static void put(Buckets& buckets, const Put& item) {
    buckets.begin(item.destination, {item.entry.size(), item.records.size()});
    for (const std::string* part : {&item.entry, &item.records}) {
      auto bytes = std::as_bytes(std::span(*part));
      for (const std::size_t first = bytes.size() / 3; !bytes.empty();) {
        const std::size_t step = std::min(bytes.size(), std::max<std::size_t>(1, first));
        buckets.put(bytes.first(step));
        bytes = bytes.subspan(step);
      }
    }
  }

  static std::string text_of(Buckets::Item& item, ItemPart part, std::uint64_t unit) {
    std::string text;
    const auto add = [&](Buckets::Bytes piece) {
      EXPECT_EQ(piece.size() % unit, 0U);
      text.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    };
    if (const auto whole = item.whole(part)) {
      add(*whole);
    } else {
      item.each(part, unit, add);
    }
    EXPECT_EQ(text.size(), item.bytes(part));
    return text;
  }

  std::string folder_;
  std::vector<Put> items_;
};

TEST_F(BucketsTest, ItemsComeByDestinationAndThenAsTheyWerePutAside) {
  Buckets buckets(plan(), folder_);
  ASSERT_GT(buckets.plan().buckets.size(), 2U);
  for (const Put& each : items_) put(buckets, each);
  buckets.finish();
  std::vector<Put> found;
  Progress progress({});
  buckets.take_all(progress, [&](Buckets::Item& item) {
    Put put{item.destination(), text_of(item, kEntryPart, 1), ""};
    put.records = text_of(item, kRecordsPart, 2);
    found.push_back(std::move(put));
  });
  std::vector<Put> wanted = items_;
  std::stable_sort(wanted.begin(), wanted.end(),
                   [](const Put& a, const Put& b) { return a.destination < b.destination; });
  EXPECT_TRUE(found == wanted);
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(BucketsTest, MoreOrLessThanWasPlannedIsAnInputThatChanged) {
  const auto refused = [&](const std::vector<Put>& items) {
    Buckets buckets(plan(), folder_);
    try {
      for (const Put& each : items) put(buckets, each);
      buckets.finish();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Corruption);
      return std::string(error.what()).find("changed while it was shuffled") != std::string::npos;
    }
    return false;
  };
  std::vector<Put> items = items_;
  items.pop_back();
  EXPECT_TRUE(refused(items));
  items = items_;
  items[7].records += "xx";
  EXPECT_TRUE(refused(items));
  items = items_;
  items[5].records += "xx";  // a large one
  EXPECT_TRUE(refused(items));
  items = items_;
  items[7].destination = kDestinations;
  EXPECT_TRUE(refused(items));
  items = items_;
  items.insert(items.end(), 100, items[8]);
  EXPECT_TRUE(refused(items));
  EXPECT_FALSE(refused(items_));
}

}  // namespace
}  // namespace penstock::writer
