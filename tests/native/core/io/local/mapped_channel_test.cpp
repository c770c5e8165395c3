// Reads out of mapped files: which pages are asked for, and what a channel that must not wait leaves to others.
#include "core/io/local/local_store.h"
#include "dropped_file.h"
#include "open_by.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <span>
#include <thread>
#include <vector>

namespace {
std::atomic<int> times_asked{0};
}

// Takes the place of the C library's in this executable.
extern "C" int mincore(void* begin, size_t bytes, unsigned char* pages) noexcept {
  ++times_asked;
  return static_cast<int>(syscall(SYS_mincore, begin, bytes, pages));
}

namespace penstock {
namespace {

std::int64_t major_faults() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_majflt;
}

class MappedChannelTest : public ::testing::Test {
 protected:
  Outcome read(Channel& channel, std::uint64_t offset, std::uint64_t bytes) {
    buffer_.assign(bytes, std::byte{0});
    return dropped_.read(channel, offset, buffer_);
  }
  bool is_right(std::uint64_t offset) const {
    for (std::size_t i = 0; i < buffer_.size(); ++i) {
      if (buffer_[i] != DroppedFile::byte_at(offset + i)) return false;
    }
    return true;
  }

  DroppedFile dropped_{1U << 20};
  std::vector<std::byte> buffer_;
  LocalStore store_;
};

TEST_F(MappedChannelTest, OnlyPagesThatAReadTouchesAreReadFromTheDevice) {
  const auto channel = open_by(store_, Reader::Mmap);
  EXPECT_EQ(read(*channel, 0, 0), Outcome::Done);  // maps the file; pages that are mapped cannot leave
  if (!dropped_.drop()) GTEST_SKIP() << "this file system keeps what it has";
  EXPECT_EQ(read(*channel, 300'000, 10'000), Outcome::Done);
  EXPECT_TRUE(is_right(300'000));
  EXPECT_EQ(read(*channel, 8'191, 2), Outcome::Done);
  EXPECT_TRUE(is_right(8'191));
  const std::vector<bool> pages = dropped_.pages();
  for (std::size_t page = 0; page < pages.size(); ++page) {
    EXPECT_EQ(pages[page], page == 1 || page == 2 || (page >= 73 && page <= 75)) << page;
  }
}

TEST_F(MappedChannelTest, AllThatIsSubmittedIsAskedForBeforeTheFirstIsGivenBack) {
  const auto channel = open_by(store_, Reader::Mmap);
  EXPECT_EQ(read(*channel, 0, 0), Outcome::Done);  // maps the file; pages that are mapped cannot leave
  if (!dropped_.drop()) GTEST_SKIP() << "this file system keeps what it has";
  constexpr std::size_t kReads = 20;
  std::vector<std::byte> bytes(kReads);
  std::vector<Read> reads(kReads);
  std::vector<Read*> submitted;
  for (std::size_t i = 0; i < kReads; ++i) {
    reads[i].file = &dropped_.file();
    reads[i].offset = i * 40'960;
    reads[i].size = 1;
    reads[i].destination = &bytes[i];
    submitted.push_back(&reads[i]);
  }
  channel->submit(submitted);
  Read* done = nullptr;
  EXPECT_EQ(channel->wait(std::span(&done, 1), std::chrono::seconds(10)), 1U);
  const auto there = [&] {
    const std::vector<bool> pages = dropped_.pages();
    return std::count(pages.begin(), pages.end(), true);
  };
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (there() < static_cast<std::ptrdiff_t>(kReads) && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(there(), static_cast<std::ptrdiff_t>(kReads));
  for (std::size_t ended = 1; ended < kReads;) ended += channel->wait(std::span(&done, 1), std::chrono::seconds(1));
  for (std::size_t i = 0; i < kReads; ++i) EXPECT_EQ(bytes[i], DroppedFile::byte_at(i * 40'960));
}

TEST_F(MappedChannelTest, AfterManyReadsThatWereThereNobodyAsksUntilAPageIsMissing) {
  const auto channel = open_by(store_, Reader::Mmap);
  const auto cached = open_by(store_, Reader::Mmap, ChannelMode::NonBlocking);
  EXPECT_EQ(read(*channel, 0, 0), Outcome::Done);
  if (!dropped_.drop()) GTEST_SKIP() << "this file system keeps what it has";
  for (Channel* each : {channel.get(), cached.get()}) {
    const std::uint64_t cold = each == channel.get() ? 300'000 : 700'000;
    for (unsigned i = 0; i < 257; ++i)
      EXPECT_EQ(read(*channel, i * 100ULL, 100), Outcome::Done);  // of the device, the first time
    const std::int64_t before = major_faults();
    for (unsigned i = 0; i < 257; ++i) EXPECT_EQ(read(*each, i * 100ULL, 100), Outcome::Done);
    EXPECT_TRUE(is_right(25'600));
    times_asked = 0;
    for (unsigned i = 0; i < 100; ++i) EXPECT_EQ(read(*each, i * 100ULL, 100), Outcome::Done);
    if (major_faults() != before) GTEST_SKIP() << "this machine has no memory left for a page of code";
    EXPECT_EQ(times_asked, 0);
    for (unsigned i = 0; i < 32; ++i) {  // each beyond what a fault takes in from the page cache around it
      const Outcome outcome = read(*each, cold + i * 8'192ULL, 100);
      EXPECT_TRUE(outcome == Outcome::Done ? is_right(cold + i * 8'192ULL) : outcome == Outcome::NotAtHand);
    }
    EXPECT_GT(times_asked, 0);
  }
  EXPECT_EQ(read(*cached, 1'000'000, 100), Outcome::NotAtHand);
}

TEST_F(MappedChannelTest, ANonBlockingChannelMapsNoFileAndTakesWhatIsThere) {
  const auto cached = open_by(store_, Reader::Mmap, ChannelMode::NonBlocking);
  EXPECT_EQ(read(*cached, 0, 100), Outcome::NotAtHand);
  EXPECT_EQ(read(*open_by(store_, Reader::Mmap), 0, 1), Outcome::Done);
  EXPECT_EQ(read(*cached, 4'095, 600'000), Outcome::Done);
  EXPECT_TRUE(is_right(4'095));
  EXPECT_EQ(read(*cached, (1U << 20) - 7, 7), Outcome::Done);
  EXPECT_TRUE(is_right((1U << 20) - 7));
}

TEST_F(MappedChannelTest, ANonBlockingChannelLeavesWhatIsNotThere) {
  const auto cached = open_by(store_, Reader::Mmap, ChannelMode::NonBlocking);
  EXPECT_EQ(read(*open_by(store_, Reader::Mmap), 0, 0), Outcome::Done);
  if (!dropped_.drop()) GTEST_SKIP() << "this file system keeps what it has";
  for (unsigned i = 0; i < 64; ++i) EXPECT_EQ(read(*cached, i * 16'000ULL, 100), Outcome::NotAtHand);
  const std::vector<bool> pages = dropped_.pages();
  EXPECT_EQ(std::count(pages.begin(), pages.end(), true), 0) << "it began to read";
}

TEST_F(MappedChannelTest, ANonBlockingChannelLeavesErrorsToTheOneThatMayWait) {
  const auto cached = open_by(store_, Reader::Mmap, ChannelMode::NonBlocking);
  EXPECT_EQ(read(*open_by(store_, Reader::Mmap), 0, 1), Outcome::Done);
  EXPECT_EQ(read(*cached, 1U << 20, 1), Outcome::NotAtHand);
  EXPECT_EQ(read(*cached, UINT64_MAX - 4, 5), Outcome::NotAtHand);
}

}  // namespace
}  // namespace penstock
