#include "core/io/cache/cache_folder.h"

#include "core/base/error.h"
#include "tests/native/temporary_folder.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace penstock::testing
