#include "writer/shuffle/buckets.h"

#include "core/base/error.h"
#include "tests/native/temporary_folder.h"

#include <gtest/gtest.h>

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

  // What is said where a byte of the scratch file changed, this far behind the buckets or into the first; "": nothing.
  std::string said_of_damage(std::vector<Put> items, bool is_behind, std::uint64_t offset) {
    items_ = std::move(items);
    Buckets buckets(plan(), folder_.path());
    for (const Put& each : items_) put(buckets, each);
    buckets.finish();
    damage_scratch_file(folder_.path(), offset + (is_behind ? buckets.plan().large_offset : 0));
    Progress progress({});
    try {
      buckets.take_all(progress, [](Buckets::Item& item) { taken(item); });
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Corruption);
      return error.what();
    }
    return "";
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
  const std::string wanted = "what was read back is not what was written";
  const auto is_seen = [&](const std::vector<Put>& items, bool is_behind, std::uint64_t offset) {
    return said_of_damage(items, is_behind, offset).find(wanted) != std::string::npos;
  };
  const std::string entry(20'000, 'e');
  const std::string values(100, 'v');
  const std::string records(20'000, 'r');
  const Put little{7, "entry", "values", "records."};
  EXPECT_TRUE(is_seen({little}, false, sizeof(ItemHeader) + 3));
  for (const std::uint64_t offset : {0U, 19'999U, 20'050U, 20'100U, 40'099U}) {
    EXPECT_TRUE(is_seen({little, {9, entry, values, records}}, true, offset)) << offset;
  }
  for (const std::uint64_t offset : {0U, 19'999U}) {
    EXPECT_TRUE(is_seen({{9, entry, "", ""}, little}, true, offset)) << "opaque, " << offset;
    EXPECT_TRUE(is_seen({{9, "", "", records}, little}, true, offset)) << "tokens, " << offset;
  }
  EXPECT_TRUE(is_seen({{9, entry, values, ""}}, true, 20'099)) << "opaque with columns";
}

TEST_F(BucketsTest, MoreOrLessThanWasPlannedIsAnInputThatChanged) {
  const auto refused = [&](const std::vector<Put>& items) {
    Buckets buckets(plan(), folder_.path());
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
