#include "core/io/local/local_store.h"

#include "tests/native/core/io/in_child.h"
#include "tests/native/core/io/local/ways_to_read.h"
#include "tests/native/core/io/wanted_read.h"
#include "tests/native/message_of.h"
#include "tests/native/temporary_folder.h"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <random>
#include <thread>

namespace {

// The file system's bad days, which no real file shows on demand: reads cut short, calls interrupted.
std::atomic<bool> reads_are_cut{false};
std::atomic<int> interruptions{0};
std::atomic<int> system_calls{0};

bool interrupted() {
  ++system_calls;
  if (interruptions <= 0) return false;
  --interruptions;
  errno = EINTR;
  return true;
}

}  // namespace

// These take the place of the C library's in this executable.
extern "C" ssize_t pread(int fd, void* buffer, size_t count, off_t offset) {
  if (interrupted()) return -1;
  return syscall(SYS_pread64, fd, buffer, reads_are_cut ? (count + 2) / 3 : count, offset);
}
extern "C" ssize_t preadv(int fd, const iovec* pieces, int count, off_t offset) {
  if (interrupted()) return -1;
  return syscall(SYS_preadv, fd, pieces, reads_are_cut ? (count + 1) / 2 : count, offset, 0);
}

namespace penstock::testing {
namespace {

namespace fs = std::filesystem;

class LocalStoreTest : public ::testing::Test {
 protected:
  /// content_of(bytes, seed).
  File make_file(const std::string& name, std::uint64_t bytes, unsigned seed = 0) {
    std::ofstream(folder_ / name, std::ios::binary) << content_of(bytes, seed);
    return {folder_ / name, bytes};
  }
  /// Of 64 bytes each, the i-th content_of(64, i).
  std::deque<File> make_files(unsigned count) {
    std::deque<File> files;
    for (unsigned i = 0; i < count; ++i) files.push_back(make_file(std::to_string(i), 64, i));
    return files;
  }

  const TemporaryFolder folder_;
};

/// The error's words; "" if the file's 64 bytes are those of the seed.
std::string read_all(Channel& channel, const File& file, unsigned seed) {
  WantedRead one(file, 0, 64);
  read_one(channel, one);
  return one.right(seed) ? "" : "wrong: " + one.message();
}

/// The same for every way to read.
class EveryReader : public LocalStoreTest, public ::testing::WithParamInterface<Reader> {
 protected:
  void SetUp() override {
    if (const auto why = refusal_of(GetParam(), folder_.path())) GTEST_SKIP() << *why;
  }
};

std::string name_of(const ::testing::TestParamInfo<Reader>& info) {
  return std::array{"Auto", "Pread", "Uring", "Direct", "Mmap"}.at(static_cast<std::size_t>(info.param));
}
INSTANTIATE_TEST_SUITE_P(, EveryReader, ::testing::Values(Reader::Pread, Reader::Uring, Reader::Direct, Reader::Mmap),
                         name_of);

TEST_F(LocalStoreTest, NeighboursAreReadByOneCallWithinBoundsAndInterruptedAndShortReadsAreContinued) {
  const File file = make_file("a", 3'000'000);
  const auto channel = open_by(LocalStore(), Reader::Pread);
  const auto calls = [&](std::uint64_t size, int count, std::uint64_t gap) {
    std::deque<WantedRead> wanted;
    for (int i = 0; i < count; ++i) wanted.emplace_back(file, i * (size + gap), size);
    system_calls = 0;
    run(*channel, wanted);
    for (const WantedRead& one : wanted) EXPECT_TRUE(one.right(0));
    return system_calls.load();
  };
  EXPECT_EQ(calls(4'096, 64, 0), 1);
  EXPECT_EQ(calls(4'096, 65, 0), 2);     // 64 pieces
  EXPECT_EQ(calls(300'000, 6, 0), 2);    // 1 MiB
  EXPECT_EQ(calls(2'000'000, 1, 0), 1);  // one read is one read
  EXPECT_EQ(calls(4'096, 10, 1), 10);    // not neighbours
  reads_are_cut = true;
  interruptions = 25;
  EXPECT_GT(calls(9'999, 11, 0), 25);
  reads_are_cut = false;
  EXPECT_EQ(interruptions, 0);
}

TEST_P(EveryReader, WhatIsNoRegularFileIsRefusedWithoutWaiting) {
  const std::string fifo = folder_ / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const File files[] = {{folder_.path(), 10}, {fifo, 10}, {"/dev/zero", 10}, {folder_ / "missing", 10}};
  const auto channel = open_by(LocalStore(), GetParam());
  std::deque<WantedRead> wanted;
  for (const File& file : files) wanted.emplace_back(file, 0, 10);
  run(*channel, wanted);
  EXPECT_EQ(wanted[0].message(), folder_.path() + ": not a regular file");
  EXPECT_EQ(wanted[1].message(), fifo + ": not a regular file");
  EXPECT_EQ(wanted[2].kind(), ErrorKind::Corruption);
  EXPECT_EQ(wanted[3].kind(), ErrorKind::NotFound);
}

TEST_P(EveryReader, AFileCutAfterItWasOpenedIsCorruptionForTheReadsBeyondTheCutOnly) {
  if (GetParam() == Reader::Mmap) GTEST_SKIP() << "there it is a signal";
  const File file = make_file("a", 40'000);
  const auto channel = open_by(LocalStore(), GetParam());
  std::deque<WantedRead> first;
  first.emplace_back(file, 0, 100);
  run(*channel, first);
  fs::resize_file(file.path(), 25'000);
  std::deque<WantedRead> wanted;
  for (int i = 0; i < 4; ++i) wanted.emplace_back(file, i * 10'000, 10'000);
  run(*channel, wanted);
  EXPECT_TRUE(wanted[0].right(0));
  EXPECT_TRUE(wanted[1].right(0));
  const std::string ends = file.path() + ": the file ends at offset 25,000, before a read of 10,000 bytes at offset ";
  EXPECT_EQ(wanted[2].message(), ends + "20,000 does; it had 40,000 bytes");
  EXPECT_EQ(wanted[3].message(), ends + "30,000 does; it had 40,000 bytes");
  EXPECT_EQ(wanted[3].kind(), ErrorKind::Corruption);
}

TEST_F(LocalStoreTest, AFileCutAfterItWasMappedEndsTheProcess) {
  const File file = make_file("a", 40'000);
  EXPECT_FALSE(in_child([&] {
    const auto channel = open_by(LocalStore(), Reader::Mmap);
    WantedRead first(file, 0, 100);
    read_one(*channel, first);
    fs::resize_file(file.path(), 10'000);
    WantedRead beyond(file, 20'000, 100);
    read_one(*channel, beyond);
    return true;  // it would have been read, or failed
  }));
}

// Each thread wants to hold more descriptors than are left for all of them: cached ones make room.
TEST_P(EveryReader, ThreadsThatHoldDescriptorsLetEachOtherGoOn) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "UndefinedBehaviorSanitizer needs a descriptor to look at an object";
#endif
  const std::deque<File> files = make_files(12);
  const LocalStore store(100);
  std::vector<std::unique_ptr<Channel>> channels;
  for (int t = 0; t < 3; ++t) channels.push_back(open_by(store, GetParam()));
  const FileLimit limit(64);
  std::vector<int> hogs;
  for (int fd = ::dup(STDERR_FILENO); fd >= 0; fd = ::dup(STDERR_FILENO)) hogs.push_back(fd);
  for (int i = 0; i < 4; ++i) {
    ::close(hogs.back());
    hogs.pop_back();
  }
  std::vector<std::string> errors(3);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 200; ++round) {
        std::deque<WantedRead> wanted;
        for (unsigned k = 0; k < 4; ++k) wanted.emplace_back(files[4 * t + k], 0, 64);
        run(*channels[t], wanted);
        for (unsigned k = 0; k < 4; ++k) {
          if (!wanted[k].right(4 * t + k)) errors[t] = wanted[k].message() + " wrong";
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int fd : hogs) ::close(fd);
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

TEST_F(LocalStoreTest, DescriptorsAndMappingsAreBoundedAndGoWithTheStore) {
  const std::deque<File> files = make_files(50);
  const auto mappings = [&] {
    std::ifstream maps("/proc/self/maps");
    std::size_t count = 0;
    for (std::string line; std::getline(maps, line);) count += line.find(folder_.path()) != std::string::npos ? 1 : 0;
    return count;
  };
  const std::size_t before = open_descriptors();
  for (const Reader reader : {Reader::Pread, Reader::Mmap}) {
    {
      const auto channel = open_by(LocalStore(8), reader);
      for (unsigned i = 0; i < 50; ++i) EXPECT_EQ(read_all(*channel, files[i], i), "");
      EXPECT_EQ(mappings(), reader == Reader::Mmap ? 8U : 0U);
      EXPECT_EQ(open_descriptors(), reader == Reader::Mmap ? before : before + 8);
    }
    EXPECT_EQ(mappings() + open_descriptors(), before);
  }
}

TEST_F(LocalStoreTest, WhereThereIsNoRoomForAnotherMappingThoseInTheCacheMakeIt) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's address space has no bound";
#endif
  constexpr std::uint64_t kBytes = 64U << 20;
  std::deque<File> files = make_files(4);
  for (File& file : files) {
    file.bytes = kBytes;
    fs::resize_file(file.path(), kBytes);
  }
  EXPECT_TRUE(in_child([&] {  // whose address space is bounded
    std::uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t bound = pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) + 2 * kBytes + kBytes / 2;
    const rlimit limit{bound, bound};
    const auto channel = open_by(LocalStore(), Reader::Mmap);
    ::setrlimit(RLIMIT_AS, &limit);
    expect_error([] { open_by(LocalStore(), Reader::Mmap); }, ErrorKind::InvalidArgument, "(ulimit -v); use \"auto\"");
    for (unsigned i = 0; i < 12; ++i) EXPECT_EQ(read_all(*channel, files[i % 4], i % 4), "");
    return !HasFailure();
  }));
}

TEST_P(EveryReader, AFileInUseOutlivesManyOthers) {
  const std::deque<File> files = make_files(40);
  const auto channel = open_by(LocalStore(4), GetParam());
  EXPECT_EQ(read_all(*channel, files[0], 0), "");
  fs::remove(files[0].path());  // from here on, only a cached descriptor can read it
  for (unsigned i = 1; i < 40; ++i) {
    EXPECT_EQ(read_all(*channel, files[i], i), "");
    EXPECT_EQ(read_all(*channel, files[0], 0), "") << i;
  }
  for (unsigned i = 1; i < 40; ++i) read_all(*channel, files[i], i);
  EXPECT_NE(read_all(*channel, files[0], 0), "") << "unused for so long, it was closed";
}

// The path, the size and the address of the file are the same: only the store can know that it is another file.
TEST_P(EveryReader, AFileThatIsForgottenIsClosedAndOpenedAnew) {
  const File other = make_file("other", 64, 3);
  const std::size_t before = open_descriptors();
  const auto reader = LocalStore().reading_by(GetParam());
  std::vector<File> files{make_file("a", 64, 1), make_file("b", 64, 2)};
  const auto read = [&](const File& file, unsigned seed) {
    EXPECT_EQ(read_all(*reader->open_channel(ChannelMode::MayWait), file, seed), "");
  };
  read(files[0], 1);
  read(files[1], 2);
  read(other, 3);
  make_file("new", 64, 4);
  fs::rename(folder_ / "new", files[0].path());
  read(files[0], 1);  // what was opened stays
  reader->forget(std::as_bytes(std::span(files)));
  EXPECT_EQ(open_descriptors(), GetParam() == Reader::Mmap ? before : before + 1) << "only the other file's";
  read(files[0], 4);
  fs::remove(other.path());
  read(other, 3);
}

TEST_P(EveryReader, FilesAreForgottenWhileOtherThreadsReadOthers) {
  const auto reader = LocalStore(8).reading_by(GetParam());
  const std::deque<File> others = make_files(12);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      const auto channel = reader->open_channel(ChannelMode::MayWait);
      for (unsigned i = 0; i < 1'000; ++i) {
        const unsigned k = (i * 7 + t) % 12;
        if (!read_all(*channel, others[k], k).empty()) ++wrong;
      }
    });
  }
  for (unsigned round = 0; round < 100; ++round) {
    const std::vector<File> files{make_file("a", 64, round), make_file("b", 64, round)};
    const auto channel = reader->open_channel(ChannelMode::MayWait);
    for (const File& file : files) EXPECT_EQ(read_all(*channel, file, round), "");
    reader->forget(std::as_bytes(std::span(files)));
    for (const File& file : files) fs::remove(file.path());
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// A row needs all of its reads, and is cast as soon as it has them. A ring does so with what the page cache has.
TEST_P(EveryReader, ReadsOfOneOwnerAreHandedOutTogetherAndThoseOfTheNextApart) {
  if (GetParam() == Reader::Direct) GTEST_SKIP() << "it has no page cache";
  const File file = make_file("a", 64 << 10);
  LocalStore store;
  const auto channel = store.reading_by(GetParam())->open_channel(ChannelMode::MayWait);
  std::deque<WantedRead> wanted;
  for (std::uint64_t i = 0; i < 8; ++i) wanted.emplace_back(file, i * 5000, 100);
  std::vector<Read*> reads;
  for (WantedRead& each : wanted) {
    each.read.owner = &wanted[reads.size() < 5 ? 0 : 5];
    reads.push_back(&each.read);
  }
  bool together = false;  // a try or two may find that the kernel would have to wait
  for (int i = 0; i < 1000 && !together; ++i) {
    std::vector<std::size_t> counts;
    std::array<Read*, 64> done;
    channel->submit(reads);
    for (std::size_t ended = 0; ended < reads.size(); ended += counts.back()) {
      counts.push_back(channel->wait(done, std::chrono::seconds(1)));
    }
    together = counts == std::vector<std::size_t>{5, 3};
  }
  EXPECT_TRUE(together);
  for (const WantedRead& each : wanted) EXPECT_TRUE(each.right(0));
}

TEST_P(EveryReader, AForkedChildReadsWhileTheParentsThreadsHammerTheStore) {
  if (GetParam() == Reader::Uring || GetParam() == Reader::Direct) GTEST_SKIP() << "a ring is its process's own";
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "AddressSanitizer's allocator itself can deadlock in a child forked beside allocating threads";
#endif
  const std::deque<File> files = make_files(20);
  const LocalStore store(4);
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  const auto hammer = [&](unsigned seed, int rounds) {
    std::mt19937 random(seed);
    const auto channel = open_by(store, GetParam());
    int failures = 0;
    for (int i = 0; rounds == 0 ? !stop : i < rounds; ++i) {
      const unsigned k = random() % 20;
      failures += read_all(*channel, files[k], k).empty() ? 0 : 1;
    }
    return failures;
  };
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 3; ++t) threads.emplace_back([&, t] { wrong += hammer(t, 0); });
  const auto mine = open_by(store, GetParam());  // used before the fork and after it, on both sides
  EXPECT_EQ(read_all(*mine, files[3], 3), "");
  for (unsigned round = 0; round < 40 && !HasFailure(); ++round) {
    EXPECT_TRUE(in_child([&] { return read_all(*mine, files[4], 4).empty() && hammer(100 + round, 50) == 0; }));
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace penstock::testing
