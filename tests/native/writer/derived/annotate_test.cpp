// annotate: columns are added, replaced and removed; all else of a dataset stays as it is.
#include "writer/derived/annotate.h"

#include "tests/native/writer/small_datasets.h"
#include "writer/verify/verify.h"

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
  const ino_t stream = inode(path + "/00000/stream.bin");
  expect_stops_leave(path, [&](const Tell& tell) {
    EXPECT_EQ(annotate(path, {number("score"), category("side")}, {}, tell), before.fingerprint);
  });
  EXPECT_EQ(names(path), "score plate side ");
  const layout::Manifest after = manifest(path);
  EXPECT_EQ(after.shards[0].name, "00000.1");
  EXPECT_EQ(inode(path + "/00000.1/stream.bin"), stream) << "linked, not copied";
  EXPECT_EQ(after.features->fingerprint, before.features->fingerprint);
  EXPECT_EQ(annotate(path, {number("new")}, {"plate", "score", "side"}, {}), before.fingerprint);
  EXPECT_EQ(names(path), "new ");
  const VerifyReport report = verify(path, {});
  EXPECT_TRUE(report.ok()) << report.problems[0];
  EXPECT_TRUE(report.notices.empty()) << "what it replaced is gone";
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
    testing::expect_error([&] { annotate(path, {column}, {}, {}); }, ErrorKind::InvalidArgument, words);
  }
  std::ofstream(path + "/skipped.jsonl") << "{}\n";
  testing::expect_error([&] { annotate(path, {few}, {}, {}); }, ErrorKind::InvalidArgument,
                        "has 12 documents: skipped.jsonl lists those that `penstock write` left out");
  std::filesystem::remove(path + "/skipped.jsonl");
  testing::expect_error([&] { annotate(path, {}, {"none"}, {}); }, ErrorKind::InvalidArgument,
                        "there is no column none to be removed");
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
