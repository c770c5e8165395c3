#include "writer/shuffle/buckets.h"

#include "tests/native/message_of.h"
#include "tests/native/temporary_folder.h"
#include "writer/shuffle/bucket_item.h"
#include "writer/shuffle/bucket_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace penstock::writer {
namespace {

TEST(BucketPlan, BucketsAndTheirBuffersFitIntoMemoryAndEndWhereTheNextBegins) {
  std::mt19937_64 random(3);
  for (const std::uint64_t memory : {BucketPlanner::kLeastMemory, std::uint64_t{1} << 20, std::uint64_t{1} << 30}) {
    for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{7}}) {
      const std::uint64_t end = first + 3000;
      BucketPlanner planner(first, end, memory);
      std::uint64_t inline_bytes = 0;
      std::uint64_t large_bytes = 0;
      for (std::uint64_t destination = first; destination < end; ++destination) {
        const std::uint64_t bytes = destination % 500 == 9 ? memory / 4 : random() % 100;
        planner.add(destination, bytes);
        const bool large = bytes > memory / 8;
        inline_bytes += sizeof(ItemHeader) + (large ? sizeof(DigestBytes) : bytes);
        large_bytes += large ? bytes : 0;
      }
      const BucketPlan plan = planner.plan();
      std::uint64_t at = first;
      std::uint64_t offset = 0;
      for (const BucketPlan::Bucket& bucket : plan.buckets) {
        EXPECT_EQ(bucket.begin, at);
        EXPECT_EQ(bucket.offset, offset);
        EXPECT_LE(bucket.bytes + kTableBytes * bucket.items, memory / 4 * 3);
        at = bucket.end;
        offset += bucket.bytes;
      }
      EXPECT_EQ(at, end);
      EXPECT_EQ(offset, inline_bytes);
      EXPECT_EQ(plan.large_offset, inline_bytes);
      EXPECT_EQ(plan.scratch_bytes, inline_bytes + large_bytes);
      EXPECT_LE(plan.buffer_bytes * plan.buckets.size(), memory / 2);
      EXPECT_GE(plan.buffer_bytes, BucketPlanner::kLeastBuffer);
    }
  }
}

TEST(BucketPlan, WhatLargeDatasetsNeed) {  // as docs/cli.md says
  const auto buckets = [](std::uint64_t memory, std::uint64_t item_bytes, std::uint64_t all_bytes) {
    const std::uint64_t items = all_bytes / item_bytes;
    BucketPlanner planner(0, items, memory);
    for (std::uint64_t i = 0; i < items; ++i) planner.add(i, item_bytes);
    return planner.plan().buckets.size();
  };
  constexpr std::uint64_t kMib = 1 << 20;
  EXPECT_GT(buckets(24 * kMib, 4096, 50'000'000'000), 2500U);
  EXPECT_GT(buckets(350 * kMib, kMib, 10'000'000'000'000), 30'000U);
  EXPECT_THROW(buckets(20 * kMib, 4096, 50'000'000'000), Error);
}

TEST(BucketPlan, NothingToBeShuffledHasNoBucket) {
  const BucketPlan plan = BucketPlanner(0, 1, BucketPlanner::kLeastMemory).plan();
  EXPECT_TRUE(plan.buckets.empty());
  EXPECT_EQ(plan.scratch_bytes, 0U);
}

constexpr std::uint64_t kDestinations = 500;

struct Put {
  std::uint64_t destination = 0;
  std::string entry;
  std::string values;
  std::string records;
  bool operator==(const Put&) const = default;
};

class BucketsTest : public ::testing::Test {
 protected:
  BucketsTest() {
    std::mt19937 random(4);
    for (std::uint64_t i = 0; i < 1200; ++i) {  // several to some destinations, in any order, few of them large
      const bool is_opaque = i % 300 == 205;
      const std::size_t bytes = i % 300 == 5 || is_opaque ? 30'000 : random() % 200;
      items_.push_back({random() % kDestinations, std::string(bytes / 3, static_cast<char>(i)),
                        std::string(i % 9, static_cast<char>(i + 2)),
                        std::string(is_opaque ? 0 : bytes / 2 * 2, static_cast<char>(i + 1))});
    }
  }

  [[nodiscard]] BucketPlan plan() const {
    BucketPlanner planner(0, kDestinations, BucketPlanner::kLeastMemory);
    for (const Put& each : items_) {
      planner.add(each.destination, each.entry.size() + each.values.size() + each.records.size());
    }
    return planner.plan();
  }

  static void put(Buckets& buckets, const Put& item) {
    buckets.begin(item.destination, {item.entry.size(), item.values.size(), item.records.size()});
    for (const std::string* part : {&item.entry, &item.values, &item.records}) {
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

  // As the writer of shards takes it: what has no bytes is not asked for.
  static Put taken(Buckets::Item& item) {
    Put put{item.destination(), "", "", ""};
    if (item.bytes(kEntryPart) != 0) put.entry = text_of(item, kEntryPart, 1);
    if (item.bytes(kValuesPart) != 0) put.values = text_of(item, kValuesPart, 1);
    if (item.bytes(kRecordsPart) != 0) put.records = text_of(item, kRecordsPart, 2);
    return put;
  }

  // Changes one bit of the file without a name that lies in `folder`, through the descriptor of its owner.
  static void damage_scratch_file(const std::string& folder, std::uint64_t offset) {
    for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      const std::string target = std::filesystem::read_symlink(each.path(), gone).string();
      if (gone || !target.starts_with(folder + "/")) continue;
      const int file = std::stoi(each.path().filename().string());
      char byte = 0;
      ASSERT_EQ(::pread(file, &byte, 1, static_cast<off_t>(offset)), 1);
      byte = static_cast<char>(byte ^ 4);
      ASSERT_EQ(::pwrite(file, &byte, 1, static_cast<off_t>(offset)), 1);
      return;
    }
    FAIL() << "no scratch file in " << folder;
  }

  // A changed byte of the scratch file, this far behind the buckets or into the first, is seen.
  void expect_damage_seen(std::vector<Put> items, bool is_behind, std::uint64_t offset) {
    SCOPED_TRACE(::testing::Message() << offset << " of " << items.size());
    items_ = std::move(items);
    Buckets buckets(plan(), folder_.path());
    for (const Put& each : items_) put(buckets, each);
    buckets.finish();
    damage_scratch_file(folder_.path(), offset + (is_behind ? buckets.plan().large_offset : 0));
    Progress progress({});
    testing::expect_error([&] { buckets.take_all(progress, [](Buckets::Item& item) { taken(item); }); },
                          ErrorKind::Corruption, "what was read back is not what was written");
  }

  const testing::TemporaryFolder folder_;
  std::vector<Put> items_;
};

TEST_F(BucketsTest, ItemsComeByDestinationAndThenAsTheyWerePutAside) {
  Buckets buckets(plan(), folder_.path());
  ASSERT_GT(buckets.plan().buckets.size(), 2U);
  for (const Put& each : items_) put(buckets, each);
  buckets.finish();
  std::vector<Put> found;
  Progress progress({});
  buckets.take_all(progress, [&](Buckets::Item& item) { found.push_back(taken(item)); });
  std::vector<Put> wanted = items_;
  std::stable_sort(wanted.begin(), wanted.end(),
                   [](const Put& a, const Put& b) { return a.destination < b.destination; });
  EXPECT_TRUE(found == wanted);
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(BucketsTest, AChangedByteOfTheScratchFileIsSeenWhateverPartItLiesIn) {
  const std::string entry(20'000, 'e');
  const std::string values(100, 'v');
  const std::string records(20'000, 'r');
  const Put little{7, "entry", "values", "records."};
  expect_damage_seen({little}, false, sizeof(ItemHeader) + 3);
  for (const std::uint64_t offset : {0U, 19'999U, 20'050U, 20'100U, 40'099U}) {
    expect_damage_seen({little, {9, entry, values, records}}, true, offset);
  }
  for (const std::uint64_t offset : {0U, 19'999U}) {
    expect_damage_seen({{9, entry, "", ""}, little}, true, offset);    // opaque
    expect_damage_seen({{9, "", "", records}, little}, true, offset);  // tokens
  }
  expect_damage_seen({{9, entry, values, ""}}, true, 20'099);  // opaque with columns
}

TEST_F(BucketsTest, MoreOrLessThanWasPlannedIsAnInputThatChanged) {
  const auto make = [&](const std::function<void(std::vector<Put>&)>& change) {
    std::vector<Put> items = items_;
    change(items);
    Buckets buckets(plan(), folder_.path());
    for (const Put& each : items) put(buckets, each);
    buckets.finish();
  };
  make([](auto&) {});
  const std::function<void(std::vector<Put>&)> changes[] = {
      [](auto& items) { items.pop_back(); },
      [](auto& items) { items[7].records += "xx"; },
      [](auto& items) { items[5].records += "xx"; },  // a large one
      [](auto& items) { items[7].destination = kDestinations; },
      [](auto& items) { items.insert(items.end(), 100, items[8]); },
  };
  for (const auto& change : changes) {
    testing::expect_error([&] { make(change); }, ErrorKind::Corruption, "changed while it was shuffled");
  }
}

}  // namespace
}  // namespace penstock::writer
