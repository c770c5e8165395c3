#include "core/io/cache/cache_folder.h"

#include "core/base/error.h"
#include "tests/native/temporary_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace penstock::testing {
namespace {

TEST(CacheFolder, HoldsWhatLiesAtItsAddressAndAnotherOneOrAnotherVersionIsAnotherFolder) {
  const TemporaryFolder root;
  const auto path_of = [&](const char* address, const char* version) {
    return CacheFolder(root.path(), address, version).path();
  };
  EXPECT_EQ(path_of("http://host/corpus", "1"), path_of("http://host/corpus", "1"));
  EXPECT_NE(path_of("http://host/corpus", "1"), path_of("http://host/corpus", "2"));
  EXPECT_NE(path_of("http://host/corpus", "1"), path_of("http://host/corpus2", "1"));
  EXPECT_NE(path_of("ab", "c"), path_of("a", "bc"));
  const CacheFolder folder(root.path(), "http://host/corpus", "1");
  for (const char* path : {"http://host/corpus", "http://host/corpus/00000/stream.bin", "http://host/corpus.idx"}) {
    EXPECT_TRUE(folder.holds(path)) << path;
  }
  for (const char* path : {"http://host/corpus2/00000/stream.bin", "http://host/corp", ""}) {
    EXPECT_FALSE(folder.holds(path)) << path;
  }
  EXPECT_NE(folder.name_of("http://host/corpus/00000/stream.bin"),
            folder.name_of("http://host/corpus/00001/stream.bin"));
  std::ofstream(root / "file") << "x";
  EXPECT_THROW(CacheFolder(root / "file", "a", "1").create(), Error);
}

TEST(CacheFolder, SettlingToALargerShareRemovesNothing) {
  const TemporaryFolder root;
  const CacheFolder folder(root.path(), "a", "1");
  folder.create();
  const std::vector<CacheableFile> files{{"a/b", 8 << 20}};
  folder.settle(files, BlockShare(1000), UINT64_MAX);
  std::ofstream(folder.path() + "/" + folder.name_of("a/b") + ".data") << std::string(8 << 20, 'x');
  const std::uint64_t held = folder.disk_bytes();
  folder.settle(files, BlockShare(2000), UINT64_MAX);
  EXPECT_EQ(folder.disk_bytes(), held);
  folder.settle(files, BlockShare(0), UINT64_MAX);
  EXPECT_LT(folder.disk_bytes(), held - (7 << 20));
}

TEST(CacheFolder, ANoteThatCannotBeReadSaysThatTheShareIsNotKnown) {
  const TemporaryFolder root;
  const CacheFolder folder(root.path(), "a", "1");
  folder.create();
  std::filesystem::create_directory(folder.path() + "/about.json");  // it opens, and reading it is EISDIR
  EXPECT_NO_THROW(folder.settle(std::vector<CacheableFile>{{"a/b", 8}}, BlockShare(1000), UINT64_MAX));
}

}  // namespace
}  // namespace penstock::testing
