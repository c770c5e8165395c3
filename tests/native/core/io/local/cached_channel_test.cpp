// Reads of the consumer's own thread: what the page cache has of open files, and nothing else.
#include "core/io/local/cached_channel.h"

#include "core/io/local/cache_reads.h"
#include "core/io/local/local_store.h"
#include "dropped_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <thread>

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
  std::exception_ptr read(Channel& channel, std::uint64_t offset) { return dropped_.read(channel, offset, buffer_); }

  DroppedFile dropped_{kBytes};
  std::array<std::byte, 100> buffer_{};
  std::shared_ptr<ByteStore> store_ = make_local_store();
};

TEST_F(CachedChannelTest, OpensNoFile) {
  const auto cached = store_->open_cached_channel(Reader::Auto);
  EXPECT_EQ(read(*cached, 0), not_cached());
  EXPECT_FALSE(read(*store_->open_channel(Reader::Pread), 0));
  EXPECT_FALSE(read(*cached, 5000));
  EXPECT_EQ(buffer_[99], DroppedFile::byte_at(5099));
}

// Asking begins to read, and where a device (or who plays one to a virtual machine) is done before this thread goes on
// the bytes are there at once: so it is not told by what was read but by this thread's never having been put to sleep.
TEST_F(CachedChannelTest, WaitsForNoDevice) {
  const auto cached = store_->open_cached_channel(Reader::Auto);
  EXPECT_FALSE(read(*store_->open_channel(Reader::Pread), 0));
  constexpr unsigned kRounds = 8;
  constexpr unsigned kReads = 32;
  std::int64_t sleeps = 0;
  for (unsigned round = 0; round < kRounds; ++round) {
    if (!dropped_.drop()) GTEST_SKIP() << "this file system keeps what it has";
    const std::int64_t before = voluntary_switches();
    for (unsigned i = 0; i < kReads; ++i) {
      buffer_.fill({});
      const std::uint64_t offset = kBytes / 2 + i * 8192ULL;
      const std::exception_ptr error = read(*cached, offset);
      EXPECT_TRUE(error ? error == not_cached() : buffer_[99] == DroppedFile::byte_at(offset + 99));
    }
    sleeps += voluntary_switches() - before;
  }
  EXPECT_LE(sleeps, kRounds * kReads / 16) << "the kernel may wait for memory or a place in a queue, seldom";
}

TEST_F(CachedChannelTest, LeavesErrorsToWhoReadsInEarnest) {
  const auto cached = store_->open_cached_channel(Reader::Auto);
  EXPECT_FALSE(read(*store_->open_channel(Reader::Pread), 0));
  EXPECT_EQ(read(*cached, kBytes), not_cached());
  std::filesystem::resize_file(dropped_.file().path(), kBytes / 2);
  EXPECT_EQ(read(*cached, kBytes - 100), not_cached());
}

TEST_F(CachedChannelTest, WhoTrustsTheCacheStopsWhereItHadToWait) {
  CacheReads cache;
  Read one;
  one.file = &dropped_.file();
  one.size = buffer_.size();
  one.destination = buffer_.data();
  Read* const each = &one;
  const int fd = ::open(dropped_.file().path().c_str(), O_RDONLY | O_CLOEXEC);
  const auto read_some = [&](unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      one.offset = i * 100;
      buffer_[99] = {};
      EXPECT_EQ(cache.read(fd, std::span(&each, 1)), one.size);
      EXPECT_EQ(buffer_[99], DroppedFile::byte_at(one.offset + 99));
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
  NothingCached none;
  EXPECT_EQ(read(none, 0), not_cached());
}

}  // namespace
}  // namespace penstock
