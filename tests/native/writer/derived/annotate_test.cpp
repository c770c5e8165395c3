// annotate: columns are added, replaced and removed; all else of a dataset stays as it is.
#include "writer/derived/annotate.h"

#include "tests/native/writer/small_datasets.h"
#include "writer/shards/column_reader.h"
#include "writer/verify/verify.h"

#include <cstring>
#include <numeric>

namespace penstock::writer {
namespace {

class AnnotateTest : public SmallDatasets {
 protected:
  AnnotateTest() {
    std::iota(numbers_.begin(), numbers_.end(), 100);
    for (std::size_t i = 0; i < codes_.size(); ++i) codes_[i] = static_cast<std::int32_t>(i % 3) - 1;
  }
  [[nodiscard]] NewColumn number(const std::string& name) const {
    return {{name, {'i', 8}, {}}, {}, false, std::as_bytes(std::span(numbers_))};
  }
  [[nodiscard]] NewColumn category(const std::string& name) const {
    return {{name, {'i', 4}, {}, true}, {"left", "right"}, false, std::as_bytes(std::span(codes_))};
  }
  /// The values of a column of all documents, as text: numbers, and of a category its names.
  static std::vector<std::string> values(const std::string& path, const std::string& name) {
    std::vector<std::string> found;
    const layout::Manifest all = manifest(path);
    std::size_t c = 0;
    while (all.format.columns[c].name != name) ++c;
    for (const layout::ShardInfo& shard : all.shards) {
      ColumnReader reader(path + "/" + shard.name, all.format, shard);
      for (std::uint64_t i = 0; i < shard.entries; ++i) {
        const std::span<const std::byte> bytes = reader.values(i)[c];
        std::int64_t value = 0;
        std::memcpy(&value, bytes.data(), bytes.size());
        if (!all.format.columns[c].is_category) {
          found.push_back(std::to_string(value));
        } else {
          const auto code = static_cast<std::int32_t>(value);
          found.push_back(code < 0 ? "none" : reader.categories()[c][static_cast<std::size_t>(code)]);
        }
      }
    }
    return found;
  }
  static std::string names(const std::string& path) {
    std::string text;
    for (const ValueType& each : manifest(path).format.columns) text += each.name + " ";
    return text;
  }

  std::vector<std::int64_t> numbers_ = std::vector<std::int64_t>(kDocuments);
  std::vector<std::int32_t> codes_ = std::vector<std::int32_t>(kDocuments);
};

TEST_F(AnnotateTest, ColumnsAreAddedReplacedAndRemovedAndNothingElseChanges) {
  const std::string path = write("d", with_columns());
  const layout::Manifest before = manifest(path);
  const std::vector<std::string> plates = values(path, "plate");
  const ino_t stream = inode(path + "/00000/stream.bin");
  std::uint64_t told = 0;
  const auto tell = [&](std::uint64_t done, std::uint64_t shards) {
    EXPECT_EQ(done, ++told);
    EXPECT_EQ(shards, before.shards.size());
  };
  EXPECT_EQ(annotate(path, {number("score"), category("side")}, {}, tell), before.fingerprint);
  EXPECT_EQ(told, before.shards.size());
  EXPECT_EQ(names(path), "score plate side ");
  EXPECT_EQ(values(path, "plate"), plates);
  for (std::size_t i = 0; i < kDocuments; ++i) {
    EXPECT_EQ(values(path, "score")[i], std::to_string(numbers_[i]));
    EXPECT_EQ(values(path, "side")[i], codes_[i] < 0 ? "none" : codes_[i] == 0 ? "left" : "right");
  }
  const layout::Manifest after = manifest(path);
  EXPECT_EQ(after.shards[0].name, "00000.1");
  EXPECT_EQ(inode(path + "/00000.1/stream.bin"), stream) << "linked, not copied";
  EXPECT_EQ(after.features->fingerprint, before.features->fingerprint);
  VerifyReport report = verify(path, {});
  EXPECT_TRUE(report.ok()) << report.problems[0];
  EXPECT_TRUE(report.notices.empty()) << "what it replaced is gone";

  EXPECT_EQ(annotate(path, {}, {"plate", "score", "side"}, {}), before.fingerprint);
  EXPECT_EQ(names(path), "");
  report = verify(path, {});
  EXPECT_TRUE(report.ok() && report.notices.empty());
}

TEST_F(AnnotateTest, NamesThatAreDeclaredAreInEveryShardsTable) {
  const std::string path = write("d");
  NewColumn column = category("side");
  for (const bool declared : {false, true}) {
    column.declared = declared;
    column.categories = {"left", "right", "nowhere"};
    annotate(path, {column}, {}, {});
    for (const layout::ShardInfo& shard : manifest(path).shards) {
      EXPECT_EQ(*shard.columns->categories[0] == column.categories, declared);
    }
  }
}

TEST_F(AnnotateTest, OneThatIsStoppedLeavesTheOld) {
  const std::string path = write("d", with_columns());
  expect_stops_leave(path, [&](const Tell& tell) { annotate(path, {number("new")}, {"score"}, tell); });
  EXPECT_EQ(names(path), "plate new ");
}

TEST_F(AnnotateTest, WhatCannotBeIsRefusedAndChangesNothing) {
  const std::string path = write("d", with_columns());
  const auto before = contents(path);
  NewColumn few = number("few");
  few.values = few.values.first(24);
  NewColumn beyond = category("beyond");
  beyond.categories = {"left"};
  NewColumn twice = category("twice");
  twice.categories = {"left", "left"};
  const struct {
    NewColumn column;
    const char* words;
  } kRefusals[] = {
      {few, "column few: 3 values, the dataset has 12 documents"},
      {beyond, "column beyond: document 2 has the code 1, there are 1 categories"},
      {twice, "twice"},
      {number(""), ""},
  };
  for (const auto& [column, words] : kRefusals) {
    const std::string said = testing::message_of([&] { annotate(path, {column}, {}, {}); }, ErrorKind::InvalidArgument);
    EXPECT_NE(said.find(words), std::string::npos) << said;
  }
  const std::string said = testing::message_of([&] { annotate(path, {}, {"none"}, {}); }, ErrorKind::InvalidArgument);
  EXPECT_NE(said.find("there is no column none to be removed"), std::string::npos) << said;
  {
    const DatasetFolder writer(path, Access::Whole, true);
    testing::message_of([&] { annotate(path, {number("new")}, {}, {}); }, ErrorKind::InvalidArgument);
  }
  testing::message_of([&] { annotate(root_ / "nothing", {number("new")}, {}, {}); }, ErrorKind::NotFound);
  EXPECT_FALSE(std::filesystem::exists(root_ / "nothing"));
  EXPECT_TRUE(contents(path) == before);
}

}  // namespace
}  // namespace penstock::writer
