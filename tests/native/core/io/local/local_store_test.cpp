#include "core/io/local/local_store.h"

#include "core/base/error.h"
#include "core/io/local/ring.h"
#include "open_by.h"
#include "tests/native/core/io/wanted_read.h"
#include "tests/native/temporary_folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PENSTOCK_TEST_SANITIZED 1
#endif
#if defined(__SANITIZE_ADDRESS__)
#define PENSTOCK_TEST_ASAN 1
#endif
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PENSTOCK_TEST_ASAN 1
#define PENSTOCK_TEST_SANITIZED 1
#endif
#if __has_feature(thread_sanitizer)
#define PENSTOCK_TEST_SANITIZED 1
#endif
#endif

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

  const TemporaryFolder folder_;
};

/// The same for every way to read.
class EveryReader : public LocalStoreTest, public ::testing::WithParamInterface<Reader> {
 protected:
  void SetUp() override {
    if (GetParam() == Reader::Pread || GetParam() == Reader::Mmap) return;
    if (const auto why = Ring::refusal()) GTEST_SKIP() << "io_uring is refused here: " << *why;
    if (GetParam() != Reader::Direct) return;
    const int fd = ::open(make_file("direct", 1).path().c_str(), O_RDONLY | O_DIRECT);
    if (fd < 0) GTEST_SKIP() << "this file system has no direct reads";
    ::close(fd);
  }
};

INSTANTIATE_TEST_SUITE_P(, EveryReader, ::testing::Values(Reader::Pread, Reader::Uring, Reader::Direct, Reader::Mmap),
                         [](const auto& info) {
                           return info.param == Reader::Pread    ? "Pread"
                                  : info.param == Reader::Uring  ? "Uring"
                                  : info.param == Reader::Direct ? "Direct"
                                                                 : "Mmap";
                         });

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

/// Lowers the soft limit of open files while it lives.
class FileLimit {
 public:
  explicit FileLimit(rlim_t limit) {
    // UBSan checks that an Error is one by reading its type through a pipe, once for each type; where no descriptor is
    // left it reports what it could not read. So an Error is used before.
    const std::unique_ptr<Error> error = std::make_unique<Error>(ErrorKind::IoError, "used while descriptors are left");
    EXPECT_EQ(error->error_number(), 0);
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit lowered = before_;
    lowered.rlim_cur = limit;
    ::setrlimit(RLIMIT_NOFILE, &lowered);
  }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;
  ~FileLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST_F(LocalStoreTest, NeighboursAreReadByOneCallAndNoCallExceedsTheBounds) {
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
}

TEST_F(LocalStoreTest, InterruptedAndShortReadsAreContinued) {
  const File file = make_file("a", 100'000);
  const auto channel = open_by(LocalStore(), Reader::Pread);
  std::deque<WantedRead> wanted;
  for (int i = 0; i < 10; ++i) wanted.emplace_back(file, i * 9'999, 9'999);
  wanted.emplace_back(file, 5, 77'777);
  reads_are_cut = true;
  interruptions = 25;
  run(*channel, wanted);
  reads_are_cut = false;
  EXPECT_EQ(interruptions, 0);
  for (const WantedRead& one : wanted) EXPECT_TRUE(one.right(0)) << one.message();
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
  const auto read_cut = [&] {  // in a child, which maps the file anew
    const auto channel = open_by(LocalStore(), Reader::Mmap);
    WantedRead first(file, 0, 100);
    read_one(*channel, first);
    fs::resize_file(file.path(), 10'000);
    WantedRead beyond(file, 20'000, 100);
    read_one(*channel, beyond);
  };
  const auto is_signal = [](int status) {
#if defined(PENSTOCK_TEST_SANITIZED)
    return status != 0;  // the sanitizer takes the signal and exits
#else
    return ::testing::KilledBySignal(SIGBUS)(status);
#endif
  };
  EXPECT_EXIT(read_cut(), is_signal, "");
}

TEST_P(EveryReader, AThousandFilesUnderALimitOf32DescriptorsAreReadByManyThreads) {
  std::deque<File> files;
  for (unsigned i = 0; i < 1'000; ++i) files.push_back(make_file(std::to_string(i), 64, i));
  const FileLimit limit(32);
  const auto store = std::make_shared<LocalStore>();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      const auto channel = open_by(*store, GetParam());
      for (int i = 0; i < 3'000; ++i) {
        const unsigned k = random() % 1'000;
        WantedRead one(files[k], random() % 32, 32);
        read_one(*channel, one);
        if (!one.right(k)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(LocalStoreTest, WhereTheProcessHasNoDescriptorLeftCachedOnesMakeRoom) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "UndefinedBehaviorSanitizer needs a descriptor to look at an object";
#endif
  const File a = make_file("a", 64, 1);
  const File b = make_file("b", 64, 2);
  const auto channel = open_by(LocalStore(100), Reader::Pread);
  const FileLimit limit(64);
  std::deque<WantedRead> wanted;
  wanted.emplace_back(a, 0, 64);
  run(*channel, wanted);
  std::vector<int> hogs;
  for (int fd = ::dup(0); fd >= 0; fd = ::dup(0)) hogs.push_back(fd);
  wanted.emplace_back(b, 0, 64);
  wanted.emplace_back(a, 0, 64);
  run(*channel, wanted);
  for (const int fd : hogs) ::close(fd);
  EXPECT_TRUE(wanted[0].right(1));
  EXPECT_TRUE(wanted[1].right(2)) << wanted[1].message();
  EXPECT_TRUE(wanted[2].right(1)) << wanted[2].message();
}

// Each thread wants to hold more descriptors than are left for all of them.
TEST_P(EveryReader, ThreadsThatHoldDescriptorsLetEachOtherGoOn) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "UndefinedBehaviorSanitizer needs a descriptor to look at an object";
#endif
  std::deque<File> files;
  for (unsigned i = 0; i < 12; ++i) files.push_back(make_file(std::to_string(i), 64, i));
  const auto store = std::make_shared<LocalStore>(100);
  std::vector<std::unique_ptr<Channel>> channels;
  for (int t = 0; t < 3; ++t) channels.push_back(open_by(*store, GetParam()));
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

TEST_F(LocalStoreTest, OpenDescriptorsAreBoundedAndClosedWithTheStore) {
  std::deque<File> files;
  for (unsigned i = 0; i < 50; ++i) files.push_back(make_file(std::to_string(i), 64, i));
  const std::size_t before = open_descriptors();
  {
    const auto store = std::make_shared<LocalStore>(8);
    const auto channel = open_by(*store, Reader::Pread);
    std::deque<WantedRead> wanted;
    for (const File& file : files) wanted.emplace_back(file, 0, 64);
    run(*channel, wanted);
    EXPECT_EQ(open_descriptors(), before + 8);
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(LocalStoreTest, MappingsAreBoundedAndGoWithTheStore) {
  std::deque<File> files;
  for (unsigned i = 0; i < 50; ++i) files.push_back(make_file(std::to_string(i), 64, i));
  const auto mappings = [&] {
    std::ifstream maps("/proc/self/maps");
    std::size_t count = 0;
    for (std::string line; std::getline(maps, line);) count += line.find(folder_.path()) != std::string::npos ? 1 : 0;
    return count;
  };
  const std::size_t before = open_descriptors();
  {
    const auto store = std::make_shared<LocalStore>(8);
    const auto channel = open_by(*store, Reader::Mmap);
    std::deque<WantedRead> wanted;
    for (const File& file : files) wanted.emplace_back(file, 0, 64);
    run(*channel, wanted);
    EXPECT_EQ(mappings(), 8U);
    EXPECT_EQ(open_descriptors(), before);
  }
  EXPECT_EQ(mappings(), 0U);
}

TEST_F(LocalStoreTest, WhereThereIsNoRoomForAnotherMappingThoseInTheCacheMakeIt) {
  constexpr std::uint64_t kBytes = 64U << 20;
  std::deque<File> files;
  for (unsigned i = 0; i < 4; ++i) {
    files.push_back(make_file(std::to_string(i), 64, i));
    files.back().bytes = kBytes;
    fs::resize_file(files.back().path(), kBytes);
  }
  const auto read_all = [&] {  // in a child, whose address space is bounded
    std::ifstream statm("/proc/self/statm");
    std::uint64_t pages = 0;
    statm >> pages;
    const rlim_t bound = pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) + 2 * kBytes + kBytes / 2;
    const rlimit limit{bound, bound};
    const auto channel = open_by(LocalStore(), Reader::Mmap);
    ::setrlimit(RLIMIT_AS, &limit);
    try {
      (void)open_by(LocalStore(), Reader::Mmap);
      ::_exit(2);
    } catch (const Error& error) {
      if (std::string(error.what()).find("(ulimit -v); use \"auto\"") == std::string::npos) ::_exit(3);
    }
    for (unsigned i = 0; i < 12; ++i) {
      WantedRead one(files[i % 4], 0, 64);
      read_one(*channel, one);
      if (!one.right(i % 4)) ::_exit(1);
    }
    ::_exit(0);
  };
#if defined(PENSTOCK_TEST_SANITIZED)
  GTEST_SKIP() << "a sanitizer's address space has no bound";
#endif
  EXPECT_EXIT(read_all(), ::testing::ExitedWithCode(0), "");
}

TEST_P(EveryReader, AFileInUseOutlivesManyOthers) {
  std::deque<File> files;
  for (unsigned i = 0; i < 40; ++i) files.push_back(make_file(std::to_string(i), 64, i));
  const auto channel = open_by(LocalStore(4), GetParam());
  const auto read = [&](const File& file) {
    std::deque<WantedRead> wanted;
    wanted.emplace_back(file, 0, 64);
    run(*channel, wanted);
    return wanted[0].message();
  };
  EXPECT_EQ(read(files[0]), "");
  fs::remove(files[0].path());  // from here on, only a cached descriptor can read it
  for (unsigned i = 1; i < 40; ++i) {
    EXPECT_EQ(read(files[i]), "");
    EXPECT_EQ(read(files[0]), "") << i;
  }
  for (unsigned i = 1; i < 40; ++i) read(files[i]);
  EXPECT_NE(read(files[0]), "");  // unused for so long, it was closed
}

// The path, the size and the address of the file are the same: only the store can know that it is another file.
TEST_P(EveryReader, AFileThatIsForgottenIsClosedAndOpenedAnew) {
  const File other = make_file("other", 64, 3);
  const std::size_t before = open_descriptors();
  const LocalStore store;
  const auto reader = store.reading_by(GetParam());
  std::vector<File> files{make_file("a", 64, 1), make_file("b", 64, 2)};
  const auto read = [&](const File& file, unsigned seed) {
    const auto channel = reader->open_channel(ChannelMode::MayWait);
    WantedRead one(file, 0, 64);
    read_one(*channel, one);
    EXPECT_TRUE(one.right(seed)) << one.message();
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
  const LocalStore store(8);
  const auto reader = store.reading_by(GetParam());
  std::deque<File> others;
  for (unsigned i = 0; i < 12; ++i) others.push_back(make_file(std::to_string(i), 64, i));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      const auto channel = reader->open_channel(ChannelMode::MayWait);
      for (unsigned i = 0; i < 1'000; ++i) {
        const unsigned k = (i * 7 + t) % 12;
        WantedRead one(others[k], 0, 64);
        read_one(*channel, one);
        if (!one.right(k)) ++wrong;
      }
    });
  }
  for (unsigned round = 0; round < 100; ++round) {
    std::vector<File> files{make_file("a", 64, round), make_file("b", 64, round)};
    const auto channel = reader->open_channel(ChannelMode::MayWait);
    for (const File& file : files) {
      WantedRead one(file, 0, 64);
      read_one(*channel, one);
      EXPECT_TRUE(one.right(round)) << one.message();
    }
    reader->forget(std::as_bytes(std::span(files)));
    for (const File& file : files) fs::remove(file.path());
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(LocalStoreTest, StoresThatReadInOtherWaysShareDescriptors) {
  const File file = make_file("a", 64, 1);
  const LocalStore store;
  WantedRead one(file, 0, 64);
  read_one(*open_by(store, Reader::Pread), one);
  const std::size_t open = open_descriptors();
  WantedRead again(file, 0, 64);
  read_one(*open_by(store, Reader::Auto, ChannelMode::NonBlocking), again);
  EXPECT_TRUE(again.right(1));
  EXPECT_EQ(open_descriptors(), open);
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
#if defined(PENSTOCK_TEST_ASAN)
  GTEST_SKIP() << "AddressSanitizer's allocator itself can deadlock in a child forked beside allocating threads";
#endif
  std::deque<File> files;
  for (unsigned i = 0; i < 20; ++i) files.push_back(make_file(std::to_string(i), 64, i));
  const auto store = std::make_shared<LocalStore>(4);
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  const auto hammer = [&](unsigned seed, int rounds) {
    std::mt19937 random(seed);
    const auto channel = open_by(*store, GetParam());
    int failures = 0;
    for (int i = 0; rounds == 0 ? !stop : i < rounds; ++i) {
      const unsigned k = random() % 20;
      WantedRead one(files[k], 0, 64);
      read_one(*channel, one);
      if (!one.right(k)) ++failures;
    }
    return failures;
  };
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 3; ++t) threads.emplace_back([&, t] { wrong += hammer(t, 0); });
  const auto mine = open_by(*store, GetParam());  // used before the fork and after it, on both sides
  std::deque<WantedRead> wanted;
  wanted.emplace_back(files[3], 0, 64);
  run(*mine, wanted);
  for (unsigned round = 0; round < 40 && !HasFailure(); ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);  // a deadlock ends the child by a signal
      WantedRead again(files[4], 0, 64);
      read_one(*mine, again);
      ::_exit(hammer(100 + round, 50) == 0 && again.right(4) ? 0 : 1);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "round " << round << ": status " << status;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace penstock::testing
