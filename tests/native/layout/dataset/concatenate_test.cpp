// Datasets in different stores opened as one, and read through a loader: any number of threads gives what one gives.
#include "layout/dataset.h"
#include "tests/native/core/io/memory_store.h"
#include "tests/native/layout/deliver.h"
#include "tests/native/layout/drive.h"
#include "writer/shards/dataset_writer.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

namespace penstock::testing {
namespace {

namespace fs = std::filesystem;

class TwoStoresTest : public ::testing::Test {
 protected:
  /// A dataset of 40 documents of 0 to 10 records in several shards; their values begin at `first`.
  void write(const std::string& name, std::uint32_t first, const std::string& layout = "compact") {
    writer::WriterOptions options;
    options.format = {"stream", layout, Schema::parse(R"([["token","<u4"]])"), R"({"name":"raw"})"};
    options.shard_bytes = 200;
    writer::DatasetWriter writer(folder_.path(name), options);
    for (std::uint32_t i = layout == "ids" ? 1 : 0; i < 40; ++i) {
      const std::vector<std::uint32_t> tokens(layout == "ids" ? 1 + i % 10 : i % 11, first + i);
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

TEST_F(TwoStoresTest, DatasetsInDifferentStoresAreReadAsThoseOfOneStoreByAnyNumberOfThreads) {
  for (const std::string layout : {"compact", "ids"}) {
    const bool has_documents = layout == "compact";
    write(layout + "a", 1'000, layout);
    write(layout + "b", 2'000, layout);
    copy_to_memory(layout + "b");
    const layout::DatasetPtr first = layout::open_dataset(on_disk(layout + "a"));
    const layout::DatasetPtr second = layout::open_dataset(on_disk(layout + "b"));
    const layout::DatasetPtr remote = layout::open_dataset(in_memory(layout + "b"));
    EXPECT_GT(remote->shards.size(), 2U);
    for (const bool memory_first : {false, true}) {
      const auto both = layout::concatenate(memory_first ? std::vector{remote, first} : std::vector{first, remote});
      const auto local = layout::concatenate(memory_first ? std::vector{second, first} : std::vector{first, second});
      EXPECT_EQ(both->stores.size(), 2U);
      EXPECT_EQ(both->fingerprint, local->fingerprint);
      const auto windows = deliver(layout::make_windows(local, 7, 1), 1, 1);
      EXPECT_EQ(windows.size(), (2 * ((both->record_count() - 1) / 7) + 4) / 5);
      const auto documents = has_documents ? deliver(layout::make_documents(local), 1, 1) : std::vector<std::string>();
      EXPECT_EQ(documents.size(), has_documents ? 2 * 80 / 5U : 0U);
      for (const bool late : {false, true}) {
        behaviour_->late = late;
        behaviour_->miss_every = late ? 3 : 1'000;
        for (const auto& [threads, prefetch] : {std::pair(1U, 1U), {4U, 3U}, {4U, 8U}}) {
          EXPECT_EQ(deliver(layout::make_windows(local, 7, 1), threads, prefetch), windows);
          EXPECT_EQ(deliver(layout::make_windows(both, 7, 1), threads, prefetch), windows);
          if (!has_documents) continue;
          EXPECT_EQ(deliver(layout::make_documents(local), threads, prefetch), documents);
          EXPECT_EQ(deliver(layout::make_documents(both), threads, prefetch), documents);
        }
      }
    }
  }
}

TEST_F(TwoStoresTest, ALoaderOfManyDatasetsHasOneChannelAThread) {
  std::vector<layout::DatasetPtr> datasets;
  for (int i = 0; i < 6; ++i) {
    const std::string name = std::to_string(i);
    write(name, 1);
    copy_to_memory(name);
    datasets.push_back(layout::open_dataset(in_memory(name)));
  }
  EXPECT_NE(layout::concatenate({datasets[0], datasets[1]})->fingerprint,
            layout::concatenate({datasets[0], datasets[2]})->fingerprint)
      << "their entries differ";
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
  EXPECT_EQ(deliver(layout::make_windows(raw, 3, 0), 4, 3), deliver(layout::make_windows(raw, 3, 0), 1, 1));
  EXPECT_THROW(layout::open_raw({{memory_, "none.bin"}}, R"([["token","<u2"]])"), Error);
  EXPECT_THROW(layout::open_megatron({{memory_, "none"}}), Error);
  EXPECT_THROW(layout::open_dataset({memory_, "none"}), Error);
}

}  // namespace
}  // namespace penstock::testing
