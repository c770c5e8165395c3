// Datasets in different stores opened as one, and read through a loader.
#include "layout/dataset.h"
#include "tests/native/core/io/memory_store.h"
#include "tests/native/layout/deliver.h"
#include "tests/native/layout/drive.h"
#include "writer/shards/dataset_writer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace penstock::testing {
namespace {

namespace fs = std::filesystem;

class TwoStoresTest : public ::testing::Test {
 protected:
  /// A dataset of 40 documents of 0 to 10 records in several shards; their values begin at `first`.
  void write(const std::string& name, std::uint32_t first) {
    writer::WriterOptions options;
    options.format = {"stream", "compact", Schema::parse(R"([["token","<u4"]])"), R"({"name":"raw"})"};
    options.shard_bytes = 200;
    writer::DatasetWriter writer(folder_.path(name), options);
    for (std::uint32_t i = 0; i < 40; ++i) {
      const std::vector<std::uint32_t> tokens(i % 11, first + i);
      const std::string entry = name + " " + std::to_string(i);
      writer.append(std::as_bytes(std::span(tokens)), std::as_bytes(std::span(entry)));
    }
    writer.commit();
  }

  /// All files of a folder, under the same paths.
  void copy_to_memory(const std::string& name) {
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path(name))) {
      if (!entry.is_regular_file()) continue;
      std::ifstream file(entry.path(), std::ios::binary);
      const std::string content{std::istreambuf_iterator<char>(file), {}};
      const auto bytes = std::as_bytes(std::span(content));
      memory_->put(entry.path().string(), {bytes.begin(), bytes.end()});
    }
  }

  [[nodiscard]] Location in_memory(const std::string& name) const { return {memory_, folder_.path(name)}; }
  [[nodiscard]] Location on_disk(const std::string& name) const { return local(folder_.path(name)); }

  TemporaryFolder folder_;
  std::shared_ptr<Behaviour> behaviour_ = std::make_shared<Behaviour>();
  std::shared_ptr<MemoryStore> memory_ = std::make_shared<MemoryStore>(behaviour_);
};

TEST_F(TwoStoresTest, DatasetsInDifferentStoresAreReadAsOne) {
  write("a", 1'000);
  write("b", 2'000);
  copy_to_memory("b");
  const auto expected = layout::concatenate({layout::open_dataset(on_disk("a")), layout::open_dataset(on_disk("b"))});
  const layout::DatasetPtr remote = layout::open_dataset(in_memory("b"));
  EXPECT_GT(remote->shards.size(), 2U);
  fs::remove_all(folder_.path("b"));  // from here on, only memory has it
  for (const bool memory_first : {false, true}) {
    const layout::DatasetPtr both = memory_first ? layout::concatenate({remote, layout::open_dataset(on_disk("a"))})
                                                 : layout::concatenate({layout::open_dataset(on_disk("a")), remote});
    EXPECT_EQ(both->stores.size(), 2U);
    EXPECT_EQ(both->fingerprint == expected->fingerprint, !memory_first);
    for (const bool late : {false, true}) {
      behaviour_->late = late;
      behaviour_->miss_every = late ? 3 : 1'000;
      const auto windows = deliver(layout::make_windows(both, 7, 1), 1, 1);
      EXPECT_EQ(windows.size(), (2 * ((both->record_count() - 1) / 7) + 4) / 5);
      EXPECT_EQ(deliver(layout::make_windows(both, 7, 1), 4, 3), windows);
      const auto documents = deliver(layout::make_documents(both), 1, 1);
      EXPECT_EQ(documents.size(), 2 * 80 / 5U);
      EXPECT_EQ(deliver(layout::make_documents(both), 4, 3), documents);
    }
  }
}

TEST_F(TwoStoresTest, TheSameAsInOneStore) {
  write("a", 1'000);
  write("b", 2'000);
  copy_to_memory("b");
  const auto one = layout::concatenate({layout::open_dataset(on_disk("a")), layout::open_dataset(on_disk("b"))});
  const auto two = layout::concatenate({layout::open_dataset(on_disk("a")), layout::open_dataset(in_memory("b"))});
  EXPECT_EQ(deliver(layout::make_windows(two, 7, 1), 4, 3), deliver(layout::make_windows(one, 7, 1), 4, 3));
  EXPECT_EQ(deliver(layout::make_documents(two), 4, 3), deliver(layout::make_documents(one), 4, 3));
}

TEST_F(TwoStoresTest, ALoaderOfManyDatasetsHasOneChannelAThread) {
  std::vector<layout::DatasetPtr> datasets;
  for (int i = 0; i < 20; ++i) {
    const std::string name = std::to_string(i);
    write(name, 1);
    copy_to_memory(name);
    datasets.push_back(layout::open_dataset(in_memory(name)));
  }
  const auto windows = layout::make_windows(layout::concatenate(datasets), 7, 1);
  behaviour_->miss_every = 1;
  EXPECT_FALSE(deliver(windows, 2, 3).empty());
  EXPECT_LE(behaviour_->channels, 2U);
  EXPECT_GE(behaviour_->channels, 1U);
}

TEST_F(TwoStoresTest, TokenFilesAndPairsOpenInAnyStore) {
  const std::vector<std::uint16_t> tokens{1, 2, 3, 4, 5};
  const auto bytes = std::as_bytes(std::span(tokens));
  memory_->put("a.bin", {bytes.begin(), bytes.end()});
  write_file(folder_.path("b.bin"), bytes);
  const auto raw = layout::open_raw({{memory_, "a.bin"}, on_disk("b.bin")}, R"([["token","<u2"]])");
  EXPECT_EQ(raw->stores.size(), 2U);
  EXPECT_EQ(deliver(layout::make_windows(raw, 5, 0), 1, 1).size(), 1U);
  EXPECT_THROW(layout::open_raw({{memory_, "none.bin"}}, R"([["token","<u2"]])"), Error);
  EXPECT_THROW(layout::open_megatron({{memory_, "none"}}), Error);
  EXPECT_THROW(layout::open_dataset({memory_, "none"}), Error);
}

}  // namespace
}  // namespace penstock::testing
