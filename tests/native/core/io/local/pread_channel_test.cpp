// Non-blocking reads, those of the consumer's own thread: what the page cache has of open files, and nothing else.
#include "core/io/local/pread_channel.h"

#include "dropped_file.h"
#include "open_by.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <array>
#include <filesystem>

namespace penstock {
namespace {

constexpr std::uint64_t kBytes = 1U << 20;

std::int64_t voluntary_switches() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

class PreadChannelTest : public ::testing::Test {
 protected:
  Outcome read(Channel& channel, std::uint64_t offset) { return dropped_.read(channel, offset, buffer_); }

  DroppedFile dropped_{kBytes};
  std::array<std::byte, 100> buffer_{};
  LocalStore store_;
};

TEST_F(PreadChannelTest, OpensNoFile) {
  const auto cached = open_by(store_, Reader::Auto, ChannelMode::NonBlocking);
  EXPECT_EQ(read(*cached, 0), Outcome::NotAtHand);
  EXPECT_EQ(read(*open_by(store_, Reader::Pread), 0), Outcome::Done);
  EXPECT_EQ(read(*cached, 5000), Outcome::Done);
  EXPECT_EQ(buffer_[99], DroppedFile::byte_at(5099));
}

// Asking begins to read, and where a device (or who plays one to a virtual machine) is done before this thread goes on
// the bytes are there at once: so it is not told by what was read but by this thread's never having been put to sleep.
TEST_F(PreadChannelTest, WaitsForNoDevice) {
  const auto cached = open_by(store_, Reader::Auto, ChannelMode::NonBlocking);
  EXPECT_EQ(read(*open_by(store_, Reader::Pread), 0), Outcome::Done);
  constexpr unsigned kRounds = 8;
  constexpr unsigned kReads = 32;
  std::int64_t sleeps = 0;
  for (unsigned round = 0; round < kRounds; ++round) {
    if (!dropped_.drop()) GTEST_SKIP() << "this file system keeps what it has";
    const std::int64_t before = voluntary_switches();
    for (unsigned i = 0; i < kReads; ++i) {
      buffer_.fill({});
      const std::uint64_t offset = kBytes / 2 + i * 8192ULL;
      const Outcome outcome = read(*cached, offset);
      EXPECT_TRUE(outcome == Outcome::Done ? buffer_[99] == DroppedFile::byte_at(offset + 99)
                                           : outcome == Outcome::NotAtHand);
    }
    sleeps += voluntary_switches() - before;
  }
  EXPECT_LE(sleeps, kRounds * kReads / 16) << "the kernel may wait for memory or a place in a queue, seldom";
}

TEST_F(PreadChannelTest, LeavesErrorsToTheChannelThatMayWait) {
  const auto cached = open_by(store_, Reader::Auto, ChannelMode::NonBlocking);
  EXPECT_EQ(read(*open_by(store_, Reader::Pread), 0), Outcome::Done);
  EXPECT_EQ(read(*cached, kBytes), Outcome::NotAtHand);
  std::filesystem::resize_file(dropped_.file().path(), kBytes / 2);
  EXPECT_EQ(read(*cached, kBytes - 100), Outcome::NotAtHand);
}

TEST_F(PreadChannelTest, AStoreOfDirectReadsHasNothingAtHand) {
  EXPECT_EQ(open_by(store_, Reader::Direct, ChannelMode::NonBlocking), nullptr);
}

}  // namespace
}  // namespace penstock
