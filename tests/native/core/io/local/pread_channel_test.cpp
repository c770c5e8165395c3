// Non-blocking reads, those of the consumer's own thread: what the page cache has of open files, and nothing else.
#include "core/io/local/pread_channel.h"

#include "tests/native/core/io/local/dropped_file.h"
#include "tests/native/core/io/local/ways_to_read.h"

namespace penstock::testing {
namespace {

constexpr std::uint64_t kBytes = 1U << 20;

std::int64_t voluntary_switches() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

TEST(NonBlockingChannel, OpensNoFileTakesWhatIsThereAndLeavesErrorsToTheOneThatMayWait) {
  for (const Reader reader : {Reader::Auto, Reader::Mmap}) {
    const DroppedFile dropped(kBytes);
    const LocalStore store;
    const auto cached = open_by(store, reader, ChannelMode::NonBlocking);
    EXPECT_EQ(dropped.read(*cached, 0, 100), Outcome::NotAtHand);
    EXPECT_EQ(dropped.read(*open_by(store, reader == Reader::Auto ? Reader::Pread : reader), 0, 1), Outcome::Done);
    for (const auto& [offset, bytes] : {std::pair{5'000U, 100U}, {4'095, 600'000}, {kBytes - 7, 7}}) {
      EXPECT_EQ(dropped.read(*cached, offset, bytes), Outcome::Done) << offset;
    }
    EXPECT_EQ(dropped.read(*cached, kBytes, 1), Outcome::NotAtHand);
    EXPECT_EQ(dropped.read(*cached, UINT64_MAX - 4, 5), Outcome::NotAtHand);
    if (reader == Reader::Mmap) continue;
    std::filesystem::resize_file(dropped.file().path(), kBytes / 2);
    EXPECT_EQ(dropped.read(*cached, kBytes - 100, 100), Outcome::NotAtHand);
  }
}

// Asking begins to read, and where a device (or who plays one to a virtual machine) is done before this thread goes on
// the bytes are there at once: so it is not told by what was read but by this thread's never having been put to sleep.
TEST(NonBlockingChannel, WaitsForNoDevice) {
  const DroppedFile dropped(kBytes);
  const LocalStore store;
  const auto cached = open_by(store, Reader::Auto, ChannelMode::NonBlocking);
  EXPECT_EQ(dropped.read(*open_by(store, Reader::Pread), 0, 100), Outcome::Done);
  constexpr unsigned kRounds = 8;
  constexpr unsigned kReads = 32;
  std::int64_t sleeps = 0;
  for (unsigned round = 0; round < kRounds; ++round) {
    if (!dropped.drop()) GTEST_SKIP() << "this file system keeps what it has";
    const std::int64_t before = voluntary_switches();
    for (unsigned i = 0; i < kReads; ++i) {
      EXPECT_NE(dropped.read(*cached, kBytes / 2 + i * 8192ULL, 100), Outcome::Failed);
    }
    sleeps += voluntary_switches() - before;
  }
  EXPECT_LE(sleeps, kRounds * kReads / 16) << "the kernel may wait for memory or a place in a queue, seldom";
}

}  // namespace
}  // namespace penstock::testing
