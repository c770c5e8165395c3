// Reads of the consumer's own thread: what the page cache has of open files, and nothing else.
#include "core/cached_channel.h"

#include "core/cache_reads.h"
#include "core/local_store.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

namespace penstock {
namespace {

constexpr std::uint64_t kBytes = 1U << 20;

std::int64_t voluntary_switches() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

class CachedChannelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // Not in /tmp where that is memory: there nothing ever leaves the page cache.
    path_ = (std::filesystem::current_path() / ("cached-channel-" + std::to_string(::getpid()))).string();
    const std::vector<char> bytes(kBytes, 'x');
    std::ofstream(path_, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file_ = {path_, kBytes};
  }
  void TearDown() override { std::filesystem::remove(path_); }

  // Whether the file left the page cache. Pages that the kernel is busy with stay at first.
  bool drop() const {
    const int fd = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    ::fsync(fd);
    bool gone = false;
    for (int tries = 0; !gone && tries < 100; ++tries) {
      if (tries != 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
      gone = is_gone(fd);
    }
    ::close(fd);
    return gone;
  }

  static bool is_gone(int fd) {
    std::vector<unsigned char> pages(kBytes / static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)));
    void* const mapped = ::mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED) return false;
    const bool told = ::mincore(mapped, kBytes, pages.data()) == 0;
    ::munmap(mapped, kBytes);
    return told && std::none_of(pages.begin(), pages.end(), [](unsigned char page) { return (page & 1U) != 0; });
  }

  std::exception_ptr read(Channel& channel, std::uint64_t offset) {
    Read one;
    one.file = &file_;
    one.offset = offset;
    one.size = buffer_.size();
    one.destination = buffer_.data();
    Read* const each = &one;
    channel.submit(std::span(&each, 1));
    std::array<Read*, 4> done{};
    EXPECT_EQ(channel.wait(done, std::chrono::seconds(10)), 1U);
    EXPECT_EQ(done[0], &one);
    return one.error;
  }

  std::string path_;
  File file_;
  std::array<std::byte, 100> buffer_{};
  std::shared_ptr<ByteStore> store_ = make_local_store();
};

TEST_F(CachedChannelTest, OpensNoFile) {
  const auto cached = store_->open_cached_channel();
  EXPECT_EQ(read(*cached, 0), not_cached());
  EXPECT_FALSE(read(*store_->open_channel(Reader::Pread), 0));
  EXPECT_FALSE(read(*cached, 5000));
  EXPECT_EQ(buffer_[99], std::byte{'x'});
}

// Asking begins to read, and where a device (or who plays one to a virtual machine) is done before this thread goes on
// the bytes are there at once: so it is not told by what was read but by this thread's never having been put to sleep.
TEST_F(CachedChannelTest, WaitsForNoDevice) {
  const auto cached = store_->open_cached_channel();
  EXPECT_FALSE(read(*store_->open_channel(Reader::Pread), 0));
  constexpr unsigned kRounds = 8;
  constexpr unsigned kReads = 32;
  std::int64_t sleeps = 0;
  for (unsigned round = 0; round < kRounds; ++round) {
    if (!drop()) GTEST_SKIP() << "this file system keeps what it has";
    const std::int64_t before = voluntary_switches();
    for (unsigned i = 0; i < kReads; ++i) {
      buffer_[99] = {};
      const std::exception_ptr error = read(*cached, kBytes / 2 + i * 8192ULL);
      EXPECT_TRUE(error ? error == not_cached() : buffer_[99] == std::byte{'x'});
    }
    sleeps += voluntary_switches() - before;
  }
  EXPECT_LE(sleeps, kRounds * kReads / 16) << "the kernel may wait for memory or a place in a queue, seldom";
}

TEST_F(CachedChannelTest, LeavesErrorsToWhoReadsInEarnest) {
  const auto cached = store_->open_cached_channel();
  EXPECT_FALSE(read(*store_->open_channel(Reader::Pread), 0));
  EXPECT_EQ(read(*cached, kBytes), not_cached());
  std::filesystem::resize_file(path_, kBytes / 2);
  EXPECT_EQ(read(*cached, kBytes - 100), not_cached());
}

TEST_F(CachedChannelTest, WhoTrustsTheCacheStopsWhereItHadToWait) {
  CacheReads cache;
  Read one;
  one.file = &file_;
  one.size = buffer_.size();
  one.destination = buffer_.data();
  Read* const each = &one;
  const int fd = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  const auto read_some = [&](unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      one.offset = i * 100;
      buffer_[99] = {};
      EXPECT_EQ(cache.read(fd, std::span(&each, 1)), one.size);
      EXPECT_EQ(buffer_[99], std::byte{'x'});
    }
  };
  read_some(255);
  EXPECT_FALSE(cache.trusts());
  read_some(1);
  EXPECT_TRUE(cache.trusts());
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  read_some(16);
  EXPECT_FALSE(cache.trusts());
  ::close(fd);
}

TEST_F(CachedChannelTest, OfAStoreWithoutAPageCacheHasNothing) {
  CachedChannel none;
  EXPECT_EQ(read(none, 0), not_cached());
}

}  // namespace
}  // namespace penstock
