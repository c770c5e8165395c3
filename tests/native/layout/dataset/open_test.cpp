#include "core/base/error.h"
#include "layout/dataset.h"
#include "layout/dataset/format.h"
#include "layout/dataset/manifest.h"
#include "tests/native/layout/drive.h"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

namespace penstock::layout {
namespace {

class OpenTest : public ::testing::Test {
 protected:
  OpenTest() : path_(::testing::TempDir() + "penstock_open_" + std::to_string(::getpid())) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~OpenTest() override { std::filesystem::remove_all(path_); }

  void write(const std::string& text) { std::ofstream(path_ + "/dataset.json", std::ios::binary) << text; }

  static Manifest manifest(std::uint64_t shards) {
    Manifest made;
    made.format = {"stream", "compact", Schema::parse(R"([["token","<u4"]])"), R"({"name":"json"})"};
    for (std::uint64_t i = 0; i < shards; ++i) {
      made.shards.push_back({shard_name(i), 10 + i, 2, 2, 7, {DigestBytes{}}, DigestBytes{std::byte{1}}});
    }
    return made;
  }

  std::string error() {
    try {
      open_dataset(testing::local(path_));
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  std::string path_;
};

TEST_F(OpenTest, TheManifestAloneMakesTheTables) {
  write(write_manifest(manifest(3)));
  const DatasetPtr dataset = open_dataset(testing::local(path_));
  EXPECT_EQ(dataset->kind, "penstock");
  EXPECT_EQ(dataset->spans, SpanKind::Compact);
  EXPECT_EQ(dataset->record_count(), 33U);
  EXPECT_EQ(dataset->span_count(), 6U);
  EXPECT_EQ(dataset->stored_record_bytes, 4U);
  EXPECT_EQ(dataset->shards[1].stream.path(), path_ + "/00001/stream.bin");
  EXPECT_EQ(dataset->shards[1].stream.bytes, 44U);
  EXPECT_EQ(dataset->shards[1].index.bytes, 48U);
  EXPECT_EQ(dataset->shards[1].directory.bytes, 16U);
  EXPECT_EQ(dataset->shards[1].data.bytes, 7U);
  EXPECT_EQ(dataset->codec_json, R"({"name":"json"})");
}

TEST_F(OpenTest, AThousandShardsOpenInMilliseconds) {
  write(write_manifest(manifest(1000)));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(open_dataset(testing::local(path_))->shards.size(), 1000U);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(500));  // generous: sanitizers
}

TEST_F(OpenTest, AFolderWithoutManifestSaysWhatItHolds) {
  EXPECT_NE(error().find("not a dataset"), std::string::npos);
  for (const char* name : {"00000", "00001", ".partial-00002-1-a"})
    std::filesystem::create_directory(path_ + "/" + name);
  EXPECT_NE(error().find("2 finished shards, 1 unfinished"), std::string::npos) << error();
  EXPECT_NE(error().find("--resume"), std::string::npos);
  std::filesystem::remove_all(path_);
  EXPECT_EQ(error(), path_ + ": no such folder");
}

TEST_F(OpenTest, AFolderOfDatasetsNamesThem) {
  for (const char* name : {"val", "train", "notes"}) std::filesystem::create_directory(path_ + "/" + name);
  for (const char* name : {"val", "train"}) std::ofstream(path_ + "/" + name + "/dataset.json") << "{}";
  EXPECT_EQ(error(), path_ + ": no dataset.json: not a dataset of penstock: did you mean " + path_ + "/train, " +
                         path_ + "/val?");
}

TEST_F(OpenTest, AManifestThatIsNoFileIsRefused) {
  const std::string file = path_ + "/dataset.json";
  std::filesystem::create_directory(file);
  EXPECT_NE(error().find("not a regular file"), std::string::npos) << error();
  std::filesystem::remove(file);
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  EXPECT_NE(error().find("not a regular file"), std::string::npos) << error();
  std::filesystem::remove(file);
  std::filesystem::create_symlink("/etc/passwd", file);
  EXPECT_NE(error().find("symbolic link"), std::string::npos) << error();
}

}  // namespace
}  // namespace penstock::layout
