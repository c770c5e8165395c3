// Reads out of mapped files: which pages are asked for, and what a channel that must not wait leaves to others.
#include "tests/native/core/io/local/dropped_file.h"
#include "tests/native/core/io/local/ways_to_read.h"

#include <sys/syscall.h>

namespace {
std::atomic<int> times_asked{0};
}

// Takes the place of the C library's in this executable.
extern "C" int mincore(void* begin, size_t bytes, unsigned char* pages) noexcept {
  ++times_asked;
  return static_cast<int>(syscall(SYS_mincore, begin, bytes, pages));
}

namespace penstock::testing {
namespace {

std::int64_t major_faults() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_majflt;
}

/// The file is mapped, and none of its pages is in the page cache.
class MappedChannelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    EXPECT_EQ(dropped_.read(*channel_, 0, 0), Outcome::Done);  // maps it; pages that are mapped cannot leave
    if (!dropped_.drop()) GTEST_SKIP() << "this file system keeps what it has";
  }
  [[nodiscard]] std::ptrdiff_t pages_there() const {
    const std::vector<bool> pages = dropped_.pages();
    return std::count(pages.begin(), pages.end(), true);
  }

  const DroppedFile dropped_{1U << 20};
  const LocalStore store_;
  const std::unique_ptr<Channel> channel_ = open_by(store_, Reader::Mmap);
  const std::unique_ptr<Channel> cached_ = open_by(store_, Reader::Mmap, ChannelMode::NonBlocking);
};

TEST_F(MappedChannelTest, OnlyPagesThatAReadTouchesAreReadFromTheDeviceAndNoneThatMayNotWait) {
  for (unsigned i = 0; i < 64; ++i) EXPECT_EQ(dropped_.read(*cached_, i * 16'000ULL, 100), Outcome::NotAtHand);
  EXPECT_EQ(pages_there(), 0) << "it began to read";
  EXPECT_EQ(dropped_.read(*channel_, 300'000, 10'000), Outcome::Done);
  EXPECT_EQ(dropped_.read(*channel_, 8'191, 2), Outcome::Done);
  const std::vector<bool> pages = dropped_.pages();
  for (std::size_t page = 0; page < pages.size(); ++page) {
    EXPECT_EQ(pages[page], page == 1 || page == 2 || (page >= 73 && page <= 75)) << page;
  }
}

TEST_F(MappedChannelTest, AllThatIsSubmittedIsAskedForBeforeTheFirstIsGivenBack) {
  constexpr std::ptrdiff_t kReads = 20;
  std::deque<WantedRead> wanted;
  for (std::uint64_t i = 0; i < kReads; ++i) wanted.emplace_back(dropped_.file(), i * 40'960, 1);
  channel_->submit(pointers_to(wanted));
  Read* done = nullptr;
  EXPECT_EQ(channel_->wait(std::span(&done, 1), std::chrono::seconds(10)), 1U);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (pages_there() < kReads && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(pages_there(), kReads);
  for (int ended = 1; ended < kReads; ++ended) channel_->wait(std::span(&done, 1), std::chrono::seconds(1));
  for (const WantedRead& one : wanted) EXPECT_TRUE(one.right(0));
}

TEST_F(MappedChannelTest, AfterManyReadsThatWereThereNobodyAsksUntilAPageIsMissing) {
  for (Channel* each : {channel_.get(), cached_.get()}) {
    const std::uint64_t cold = each == channel_.get() ? 300'000 : 700'000;
    const auto read_all = [&](Channel& channel, unsigned count) {
      for (unsigned i = 0; i < count; ++i) EXPECT_EQ(dropped_.read(channel, i * 100ULL, 100), Outcome::Done);
    };
    read_all(*channel_, 257);  // of the device, the first time
    const std::int64_t before = major_faults();
    read_all(*each, 257);
    times_asked = 0;
    read_all(*each, 100);
    if (major_faults() != before) GTEST_SKIP() << "this machine has no memory left for a page of code";
    EXPECT_EQ(times_asked, 0);
    for (unsigned i = 0; i < 32; ++i) {  // each beyond what a fault takes in from the page cache around it
      EXPECT_NE(dropped_.read(*each, cold + i * 8'192ULL, 100), Outcome::Failed);
    }
    EXPECT_GT(times_asked, 0);
  }
  EXPECT_EQ(dropped_.read(*cached_, 1'000'000, 100), Outcome::NotAtHand);
}

}  // namespace
}  // namespace penstock::testing
