// What the system is told and asked of files that are opened, and how many of them stay open.
#include "core/io/local/fd_cache.h"

#include "core/base/error.h"
#include "core/io/local/mapping_limit.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

struct Advice {
  std::string path;
  off_t offset = 0;
  off_t bytes = 0;
  int advice = 0;
};

std::atomic<bool> listens{false};  // off in all other tests: a lock here would be held for ever in a forked child
std::vector<Advice> given;
bool refuses = false;
std::atomic<int> links_read{0};

}  // namespace

// Takes the place of the C library's in this executable.
extern "C" int posix_fadvise(int fd, off_t offset, off_t bytes, int advice) {
  if (listens) {
    const auto path = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd)).string();
    given.push_back({path, offset, bytes, advice});
    if (refuses) return EINVAL;
  }
  return syscall(SYS_fadvise64, fd, offset, bytes, advice) == 0 ? 0 : errno;
}

extern "C" ssize_t readlink(const char* path, char* text, size_t bytes) {
  ++links_read;
  return syscall(SYS_readlink, path, text, bytes);
}

namespace penstock {
namespace {

class FdCacheTest : public ::testing::Test {
 protected:
  FdCacheTest() {
    std::string name = (std::filesystem::temp_directory_path() / "penstock-fds-XXXXXX").string();
    folder_ = std::filesystem::canonical(::mkdtemp(name.data())).string();
    given.clear();
    listens = true;
  }
  ~FdCacheTest() override {
    listens = false;
    refuses = false;
    std::filesystem::remove_all(folder_);
  }

  File make_file(const std::string& name) const {
    std::ofstream(folder_ + "/" + name) << "0123456789";
    return {folder_ + "/" + name, 10};
  }

  std::string folder_;
};

TEST_F(FdCacheTest, EveryFileThatIsOpenedIsSaidToBeReadAtRandom) {
  const File a = make_file("a");
  const File b = make_file("b");
  FdCache cache(1, Access::Buffered);
  FdHint hint;
  for (const File* file : {&a, &a, &b, &a}) {  // a once more: there is room for one
    EXPECT_GE(cache.pin(*file, hint).fd(), 0);
  }
  ASSERT_EQ(given.size(), 3U);
  EXPECT_EQ(given[0].path, a.path());
  EXPECT_EQ(given[1].path, b.path());
  EXPECT_EQ(given[2].path, a.path());
  for (const Advice& each : given) {
    EXPECT_EQ(each.advice, POSIX_FADV_RANDOM);
    EXPECT_TRUE(each.offset == 0 && each.bytes == 0) << "not of the whole file";
  }
}

TEST_F(FdCacheTest, AFileSystemThatTakesNoAdviceIsReadAllTheSame) {
  refuses = true;
  const File file = make_file("a");
  FdCache cache(4, Access::Buffered);
  FdHint hint;
  const FdPin pin = cache.pin(file, hint);
  EXPECT_EQ(given.size(), 1U);
  char first = 0;
  EXPECT_EQ(::pread(pin.fd(), &first, 1, 0), 1);
  EXPECT_EQ(first, '0');
}

/// A lower soft limit of descriptors while it lives.
class SoftLimit {
 public:
  explicit SoftLimit(rlim_t limit) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit lowered{limit, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &lowered);
  }
  SoftLimit(const SoftLimit&) = delete;
  SoftLimit& operator=(const SoftLimit&) = delete;
  ~SoftLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }

  [[nodiscard]] static rlim_t now() {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur;
  }
  [[nodiscard]] rlim_t hard() const { return before_.rlim_max; }

 private:
  rlimit before_{};
};

TEST_F(FdCacheTest, TheSoftLimitIsRaisedWhenAFileMoreThanItsShareIsWanted) {
  listens = false;
  const SoftLimit limit(80);  // the share is 20
  ASSERT_GT(limit.hard(), 160U);
  FdCache cache(kShareOfLimit, Access::Buffered);
  std::deque<File> files;
  for (int i = 0; i < 30; ++i) files.push_back(make_file(std::to_string(i)));
  std::vector<FdHint> hints(files.size());
  for (std::size_t i = 0; i < 20; ++i) EXPECT_GE(cache.pin(files[i], hints[i]).fd(), 0);
  EXPECT_EQ(SoftLimit::now(), 80U);
  for (std::size_t i = 20; i < files.size(); ++i) EXPECT_GE(cache.pin(files[i], hints[i]).fd(), 0);
  EXPECT_EQ(SoftLimit::now(), limit.hard());
  for (std::size_t i = 0; i < files.size(); ++i) EXPECT_TRUE(cache.pin_open(files[i], hints[i])) << i << " was closed";
}

TEST_F(FdCacheTest, AStatedNumberOfFilesLeavesTheSoftLimit) {
  listens = false;
  const SoftLimit limit(80);
  FdCache cache(20, Access::Buffered);
  std::deque<File> files;
  for (int i = 0; i < 30; ++i) files.push_back(make_file(std::to_string(i)));
  FdHint hint;
  for (const File& file : files) EXPECT_GE(cache.pin(file, hint).fd(), 0);
  EXPECT_EQ(SoftLimit::now(), 80U);
}

TEST_F(FdCacheTest, MappingsAreBoundedByTheirOwnLimitNotByThatOfDescriptors) {
  listens = false;
  constexpr std::size_t kFiles = 9000;
  std::uint64_t allowed = 0;
  std::ifstream("/proc/sys/vm/max_map_count") >> allowed;
  if (allowed / 4 * 3 < kFiles + 4096) GTEST_SKIP() << "vm.max_map_count is too low here";
  const SoftLimit limit(80);
  const std::deque<File> files(kFiles, make_file("a"));  // told by their addresses
  FdCache cache(kShareOfLimit, Access::Mapped);
  std::vector<FdHint> hints(files.size());
  for (std::size_t i = 0; i < kFiles; ++i) EXPECT_NE(cache.pin(files[i], hints[i]).open().bytes, nullptr);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < kFiles; ++i) kept += cache.pin_open(files[i], hints[i]) ? 1 : 0;
  EXPECT_EQ(kept, kFiles);
  EXPECT_EQ(SoftLimit::now(), 80U) << "a mapping needs no descriptor";
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
  listens = false;
  std::filesystem::create_directories(folder_ + "/data/00000");
  for (const char* name : {"outside", "data/00000/file"}) make_file(name);
  std::filesystem::create_symlink("file", folder_ + "/data/00000/link");
  std::filesystem::create_symlink("../../outside", folder_ + "/data/00000/way_out");
  Paths paths{folder_ + "/data", folder_ + "/data", "00000", nullptr};
  paths.folders += '\0';
  const auto shared = std::make_shared<const Paths>(std::move(paths));
  FdCache cache(4, Access::Buffered);
  const auto open = [&](const char* name) {
    const File file(shared, shared->folders.c_str(), name, 10);
    FdHint hint;
    links_read = 0;
    EXPECT_GE(cache.pin(file, hint).fd(), 0);
    cache.forget(std::as_bytes(std::span(&file, 1)));
  };
  open("file");
  EXPECT_EQ(links_read, 0);
  open("link");
  EXPECT_GT(links_read, 0);
  EXPECT_THROW(open("way_out"), Error);
}

}  // namespace
}  // namespace penstock
