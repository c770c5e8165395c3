// What the system is told and asked of files that are opened, and how many of them stay open.
#include "core/io/local/fd_cache.h"

#include "core/io/local/mapping_limit.h"
#include "tests/native/core/io/local/ways_to_read.h"
#include "tests/native/temporary_folder.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <cerrno>
#include <fstream>
#include <vector>

namespace {

std::atomic<bool> listens{false};  // off in all other tests: a lock here would be held for ever in a forked child
std::vector<std::string> advised;  // the paths of those that are said to be read at random, all of them
bool refuses = false;
std::atomic<int> links_read{0};

}  // namespace

// Takes the place of the C library's in this executable.
extern "C" int posix_fadvise(int fd, off_t offset, off_t bytes, int advice) {
  if (listens) {
    if (advice == POSIX_FADV_RANDOM && offset == 0 && bytes == 0) {
      advised.push_back(std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd)).string());
    }
    if (refuses) return EINVAL;
  }
  return syscall(SYS_fadvise64, fd, offset, bytes, advice) == 0 ? 0 : errno;
}

extern "C" ssize_t readlink(const char* path, char* text, size_t bytes) {
  ++links_read;
  return syscall(SYS_readlink, path, text, bytes);
}

namespace penstock::testing {
namespace {

class FdCacheTest : public ::testing::Test {
 protected:
  ~FdCacheTest() override { listens = false; }

  [[nodiscard]] File make_file(const std::string& name) const {
    std::ofstream(folder_ / name) << "0123456789";
    return {folder_ / name, 10};
  }
  /// Pins each; how many of them are open then.
  static std::size_t kept(FdCache& cache, const std::deque<File>& files) {
    std::vector<FdHint> hints(files.size());
    for (std::size_t i = 0; i < files.size(); ++i) EXPECT_TRUE(cache.pin(files[i], hints[i]).open());
    std::size_t open = 0;
    for (std::size_t i = 0; i < files.size(); ++i) open += cache.pin_open(files[i], hints[i]) ? 1 : 0;
    return open;
  }

  const TemporaryFolder folder_;
};

TEST_F(FdCacheTest, EveryFileThatIsOpenedIsSaidToBeReadAtRandomAndReadAlsoWhereNoAdviceIsTaken) {
  const File a = make_file("a");
  const File b = make_file("b");
  for (const bool is_refused : {false, true}) {
    advised.clear();
    refuses = is_refused;
    listens = true;
    FdCache cache(1, Access::Buffered);
    FdHint hint;
    for (const File* file : {&a, &a, &b, &a}) {  // a once more: there is room for one
      char first = 0;
      EXPECT_EQ(::pread(cache.pin(*file, hint).fd(), &first, 1, 0), 1);
      EXPECT_EQ(first, '0');
    }
    EXPECT_EQ(advised, (std::vector{a.path(), b.path(), a.path()}));
  }
}

TEST_F(FdCacheTest, TheSoftLimitIsRaisedWhenAFileMoreThanItsShareIsWantedAndNoNumberIsStated) {
  std::deque<File> files;
  for (int i = 0; i < 20; ++i) files.push_back(make_file(std::to_string(i)));
  const FileLimit limit(80);  // the share is 20
  ASSERT_GT(limit.hard(), 160U);
  FdCache stated(20, Access::Buffered);
  FdCache cache(kShareOfLimit, Access::Buffered);
  EXPECT_EQ(kept(cache, files), 20U);
  files.push_back(make_file("one more"));
  EXPECT_EQ(kept(stated, files), 20U);
  EXPECT_EQ(FileLimit::now(), 80U);
  EXPECT_EQ(kept(cache, files), 21U);
  EXPECT_EQ(FileLimit::now(), limit.hard());
}

TEST_F(FdCacheTest, MappingsAreBoundedByTheirOwnLimitNotByThatOfDescriptors) {
  constexpr std::size_t kFiles = 9000;
  std::uint64_t allowed = 0;
  std::ifstream("/proc/sys/vm/max_map_count") >> allowed;
  if (allowed / 4 * 3 < kFiles + 4096) GTEST_SKIP() << "vm.max_map_count is too low here";
  const FileLimit limit(80);
  FdCache cache(kShareOfLimit, Access::Mapped);
  EXPECT_EQ(kept(cache, std::deque<File>(kFiles, make_file("a"))), kFiles);  // told by their addresses
  EXPECT_EQ(FileLimit::now(), 80U) << "a mapping needs no descriptor";
}

TEST_F(FdCacheTest, WhatTheProcessHasMappedIsNotTheStores) {
  constexpr std::size_t kPages = 2000;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t before = mappings_share();
  if (before < kPages) GTEST_SKIP() << "vm.max_map_count is too low here";
  void* const mapped = ::mmap(nullptr, kPages * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  for (std::size_t i = 0; i < kPages; i += 2) {  // every other page is a mapping of its own then
    ASSERT_EQ(::mprotect(static_cast<std::byte*>(mapped) + i * page, page, PROT_READ), 0);
  }
  EXPECT_LE(mappings_share() + kPages - 10, before);
  ::munmap(mapped, kPages * page);
}

TEST_F(FdCacheTest, LinksAreLookedForOnlyWhereThereAreSome) {
  std::filesystem::create_directories(folder_ / "data/00000");
  for (const char* name : {"outside", "data/00000/file"}) std::ofstream(folder_ / name) << "0123456789";
  std::filesystem::create_symlink("file", folder_ / "data/00000/link");
  std::filesystem::create_symlink("../../outside", folder_ / "data/00000/way_out");
  Paths paths{folder_ / "data", folder_ / "data", "00000", nullptr};
  paths.folders += '\0';
  const auto shared = std::make_shared<const Paths>(std::move(paths));
  FdCache cache(4, Access::Buffered);
  const auto links_read_for = [&](const char* name) {
    const File file(shared, shared->folders.c_str(), name, 10);
    FdHint hint;
    links_read = 0;
    EXPECT_GE(cache.pin(file, hint).fd(), 0);
    cache.forget(std::as_bytes(std::span(&file, 1)));
    return links_read.load();
  };
  EXPECT_EQ(links_read_for("file"), 0);
  EXPECT_GT(links_read_for("link"), 0);
  EXPECT_THROW(links_read_for("way_out"), Error);
}

}  // namespace
}  // namespace penstock::testing
