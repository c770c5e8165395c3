// Reads of the consumer's own thread: what the page cache has of open files, and nothing else.
#include "core/cached_channel.h"

#include "core/cache_reads.h"
#include "core/local_store.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <vector>

namespace penstock {
namespace {

constexpr std::uint64_t kBytes = 1U << 20;

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

  // Whether the file left the page cache.
  bool drop() const {
    const int fd = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    ::fsync(fd);
    ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    ::posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);  // else asking for a byte begins to read megabytes
    char byte = 0;
    iovec piece{&byte, 1};
    const bool gone = ::preadv2(fd, &piece, 1, kBytes / 2, RWF_NOWAIT) < 0;
    ::close(fd);
    return gone;
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

TEST_F(CachedChannelTest, WaitsForNoDevice) {
  const auto cached = store_->open_cached_channel();
  EXPECT_FALSE(read(*store_->open_channel(Reader::Pread), 0));
  if (!drop()) GTEST_SKIP() << "this file system keeps what it has";
  EXPECT_EQ(read(*cached, kBytes / 2 + 200'000), not_cached());
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
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
  const auto read_at = [&](std::uint64_t offset) {
    one.offset = offset;
    buffer_[99] = {};
    const bool whole = cache.read(fd, std::span(&each, 1)) == one.size;
    return whole && buffer_[99] == std::byte{'x'};
  };
  for (unsigned i = 0; i < 256; ++i) {
    EXPECT_FALSE(cache.trusts());
    ASSERT_TRUE(read_at(i * 100));
  }
  EXPECT_TRUE(cache.trusts());
  const bool dropped = drop();
  unsigned still = 0;
  for (; cache.trusts() && still < 64; ++still) EXPECT_TRUE(read_at(kBytes / 2 + still * 8192ULL));
  ::close(fd);
  if (!dropped) GTEST_SKIP() << "this file system keeps what it has";
  EXPECT_FALSE(cache.trusts()) << "after " << still << " reads of the device";
}

TEST_F(CachedChannelTest, OfAStoreWithoutAPageCacheHasNothing) {
  CachedChannel none;
  EXPECT_EQ(read(none, 0), not_cached());
}

}  // namespace
}  // namespace penstock
