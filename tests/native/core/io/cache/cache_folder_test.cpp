#include "core/io/cache/cache_folder.h"

#include "core/base/error.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace {

using penstock::BlockShare;
using penstock::CacheFolder;

class CacheFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = std::filesystem::temp_directory_path() / "penstock-cache-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::string root_;
};

TEST_F(CacheFolderTest, AnotherAddressOrVersionIsAnotherFolder) {
  const CacheFolder one(root_, "http://host/corpus", "1");
  EXPECT_EQ(one.path(), CacheFolder(root_, "http://host/corpus", "1").path());
  EXPECT_NE(one.path(), CacheFolder(root_, "http://host/corpus", "2").path());
  EXPECT_NE(one.path(), CacheFolder(root_, "http://host/corpus2", "1").path());
  EXPECT_NE(CacheFolder(root_, "ab", "c").path(), CacheFolder(root_, "a", "bc").path());
}

TEST_F(CacheFolderTest, HoldsWhatLiesAtItsAddress) {
  const CacheFolder folder(root_, "http://host/corpus", "1");
  for (const char* path : {"http://host/corpus", "http://host/corpus/00000/stream.bin", "http://host/corpus.idx"}) {
    EXPECT_TRUE(folder.holds(path)) << path;
  }
  for (const char* path : {"http://host/corpus2/00000/stream.bin", "http://host/corp", ""}) {
    EXPECT_FALSE(folder.holds(path)) << path;
  }
  EXPECT_NE(folder.name_of("http://host/corpus/00000/stream.bin"),
            folder.name_of("http://host/corpus/00001/stream.bin"));
}

TEST_F(CacheFolderTest, SettlingToALargerShareRemovesNothing) {
  const CacheFolder folder(root_, "a", "1");
  folder.create();
  const std::vector<penstock::CacheableFile> files{{"a/b", 8 << 20}};
  folder.settle(files, BlockShare(1000), UINT64_MAX);
  const std::string data = folder.path() + "/" + folder.name_of("a/b") + ".data";
  std::ofstream(data) << std::string(8 << 20, 'x');
  const std::uint64_t held = folder.disk_bytes();
  folder.settle(files, BlockShare(2000), UINT64_MAX);
  EXPECT_EQ(folder.disk_bytes(), held);
  folder.settle(files, BlockShare(0), UINT64_MAX);
  EXPECT_LT(folder.disk_bytes(), held - (7 << 20));
}

TEST_F(CacheFolderTest, AFolderThatCannotBeMadeIsAnError) {
  std::ofstream(root_ + "/file") << "x";
  EXPECT_THROW(CacheFolder(root_ + "/file", "a", "1").create(), penstock::Error);
}

}  // namespace
