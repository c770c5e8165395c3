// Reading through io_uring: what is not in the page cache, more than the ring holds, and where the kernel refuses it.
#include "core/io/local/ring.h"

#include "core/base/error.h"
#include "core/io/local/local_store.h"
#include "open_by.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace penstock {
namespace {

constexpr std::uint64_t kFileBytes = 1 << 20;

class RingTest : public ::testing::Test {
 protected:
  RingTest() {
    std::string name = (std::filesystem::temp_directory_path() / "penstock-ring-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    file_ = {folder_ + "/file", kFileBytes};
    std::vector<std::byte> content(kFileBytes);
    for (std::uint64_t i = 0; i < kFileBytes; ++i) content[i] = byte_at(i);
    const int fd = ::open(file_.path().c_str(), O_WRONLY | O_CREAT, 0600);
    EXPECT_EQ(::write(fd, content.data(), kFileBytes), static_cast<ssize_t>(kFileBytes));
    ::fsync(fd);
    ::close(fd);
  }
  ~RingTest() override { std::filesystem::remove_all(folder_); }
  void SetUp() override {
    if (const auto why = Ring::refusal()) GTEST_SKIP() << "io_uring is refused here: " << *why;
  }

  static std::byte byte_at(std::uint64_t i) { return static_cast<std::byte>(i * 31 + i / 4096); }

  void drop_from_page_cache() const {
    const int fd = ::open(file_.path().c_str(), O_RDONLY);
    ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    ::close(fd);
  }

  /// Reads `count` ranges of the file at once by a new channel; whether each is right.
  bool read_many(Reader reader, std::uint64_t count, std::uint64_t bytes) {
    return read_by(*open_by(LocalStore(), reader), count, bytes);
  }

  bool read_by(Channel& channel, std::uint64_t count, std::uint64_t bytes) {
    std::vector<std::vector<std::byte>> buffers(count, std::vector<std::byte>(bytes));
    std::vector<Read> reads(count);
    std::vector<Read*> submitted;
    for (std::uint64_t i = 0; i < count; ++i) {
      reads[i].file = &file_;
      reads[i].offset = i * 7919 * 13 % (kFileBytes - bytes);
      reads[i].size = bytes;
      reads[i].destination = buffers[i].data();
      submitted.push_back(&reads[i]);
    }
    channel.submit(submitted);
    std::vector<Read*> done(64);
    for (std::uint64_t ended = 0; ended < count;) ended += channel.wait(done, std::chrono::seconds(1));
    return std::all_of(reads.begin(), reads.end(), [](const Read& read) {
      for (std::uint64_t i = 0; i < read.size; ++i) {
        if (read.error || read.destination[i] != byte_at(read.offset + i)) return false;
      }
      return true;
    });
  }

  std::string folder_;
  File file_;
};

TEST_F(RingTest, MoreReadsThanTheRingHoldsFromTheDeviceAndFromThePageCache) {
  for (const Reader reader : {Reader::Uring, Reader::Direct}) {
    for (const std::uint64_t bytes : {1, 511, 4096, 10'000}) {
      drop_from_page_cache();
      EXPECT_TRUE(read_many(reader, 500, bytes)) << bytes;
      EXPECT_TRUE(read_many(reader, 500, bytes)) << bytes;
    }
  }
}

TEST_F(RingTest, DirectReadsTakeTheLastBytesOfAFileThatEndsInsideABlock) {
  std::filesystem::resize_file(file_.path(), kFileBytes - 100);
  file_.bytes = kFileBytes - 100;
  const auto channel = open_by(LocalStore(), Reader::Direct);
  std::vector<std::byte> buffer(5000);
  Read read;
  read.file = &file_;
  read.size = buffer.size();
  read.offset = file_.bytes - read.size;
  read.destination = buffer.data();
  Read* each = &read;
  channel->submit({&each, 1});
  while (channel->wait({&each, 1}, std::chrono::seconds(1)) == 0) {
  }
  ASSERT_FALSE(read.error);
  for (std::uint64_t i = 0; i < read.size; ++i) ASSERT_EQ(buffer[i], byte_at(read.offset + i)) << i;
}

TEST_F(RingTest, ReadsThatNobodyWantsAreNotMade) {
  for (const Reader reader : {Reader::Pread, Reader::Uring, Reader::Direct}) {
    const auto channel = open_by(LocalStore(), reader);
    const std::atomic<bool> cancelled{true};
    std::byte untouched{0x5a};
    Read read;
    read.file = &file_;
    read.size = 1;
    read.destination = &untouched;
    read.cancelled = &cancelled;
    Read* each = &read;
    channel->submit({&each, 1});
    EXPECT_EQ(channel->wait({&each, 1}, std::chrono::seconds(1)), 1U);
    EXPECT_EQ(untouched, std::byte{0x5a});
  }
}

TEST_F(RingTest, AWaitIsEndedByAnotherThread) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  Ring ring(4);
  char byte = 0;
  const iovec piece{&byte, 1};
  ring.read(pipe[0], std::span(&piece, 1), 0, &byte);  // nothing comes
  for (int i = 0; i < 3; ++i) {
    std::thread waker([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      ring.wake();
    });
    std::array<Ring::Completion, 4> done;
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(ring.collect(done, std::chrono::seconds(30)), 0U);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
    waker.join();
  }
  ASSERT_EQ(::write(pipe[1], "x", 1), 1);
  std::array<Ring::Completion, 4> done;
  EXPECT_EQ(ring.collect(done, std::chrono::seconds(30)), 1U);
  EXPECT_EQ(done[0].tag, &byte);
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST_F(RingTest, AWakeThatCameEarlyEndsTheNextWait) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  Ring ring(4);
  char byte = 0;
  const iovec piece{&byte, 1};
  ring.read(pipe[0], std::span(&piece, 1), 0, &byte);  // nothing comes
  std::array<Ring::Completion, 4> done;
  ring.collect(done, std::chrono::milliseconds(1));  // from now on the ring looks for wakes
  ring.wake();
  EXPECT_EQ(ring.collect(done, std::chrono::nanoseconds(0)), 0U);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(ring.collect(done, std::chrono::seconds(30)), 0U);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  ASSERT_EQ(::write(pipe[1], "x", 1), 1);
  while (ring.under_way() > 0) ring.collect(done, std::chrono::seconds(1));
  ::close(pipe[0]);
  ::close(pipe[1]);
}

/// From now on `call` fails with EPERM in this process, as a container's filter does it.
void refuse(unsigned call) {
  std::array<sock_filter, 4> program{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog filter{program.size(), program.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
    ::_exit(77);
  }
}

TEST_F(RingTest, WhereTheKernelRefusesARingAutoIsPreadAndTheOthersSaySo) {
  for (const unsigned call : {SYS_io_uring_setup, SYS_io_uring_enter}) {  // at once, or when it is to read
    const pid_t child = ::fork();
    if (child == 0) {
      refuse(call);
      const auto store = std::make_shared<LocalStore>();
      bool right = store->name() == "pread" && read_many(Reader::Auto, 10, 100);
      for (const Reader reader : {Reader::Uring, Reader::Direct}) {
        try {
          open_by(*store, reader);
          right = false;
        } catch (const Error& error) {
          right = right && error.kind() == ErrorKind::InvalidArgument &&
                  std::string(error.what()).find("io_uring is refused here") != std::string::npos;
        }
      }
      ::_exit(right ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << call << ": " << status;
  }
}

TEST_F(RingTest, WhereARingIsRefusedLaterItsReadsAreMadeByPread) {
  for (const Reader reader : {Reader::Uring, Reader::Direct}) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(60);  // a wait without end ends the child by a signal
      const auto channel = open_by(LocalStore(), reader);
      bool right = read_by(*channel, 100, 5000);
      refuse(SYS_io_uring_enter);
      drop_from_page_cache();
      for (int i = 0; i < 3; ++i) right = right && read_by(*channel, 200, 5000);
      ::_exit(right ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
}

TEST_F(RingTest, WhereNoDescriptorIsLeftForARingAutoReadsByPread) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "UndefinedBehaviorSanitizer needs a descriptor to look at an object";
#endif
  const pid_t child = ::fork();
  if (child == 0) {
    const auto store = std::make_shared<LocalStore>(2);
    const bool ring = store->name() == "uring";
    std::vector<int> hogs;
    for (int fd = ::dup(0); fd >= 0; fd = ::dup(0)) hogs.push_back(fd);
    ::close(hogs.back());  // one for the file
    const auto channel = open_by(*store, Reader::Auto);
    ::_exit(ring && read_by(*channel, 10, 100) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(RingTest, ManyFilesUnderWayStayWithinTheLimitOfDescriptors) {
  std::deque<File> files;
  for (int i = 0; i < 200; ++i) {
    files.push_back({folder_ + "/" + std::to_string(i), kFileBytes});
    std::filesystem::create_hard_link(file_.path(), files.back().path());
  }
  for (const Reader reader : {Reader::Uring, Reader::Direct}) {
    drop_from_page_cache();
    const auto channel = open_by(LocalStore(10), reader);
    rlimit before{};
    ::getrlimit(RLIMIT_NOFILE, &before);
    rlimit lowered = before;
    lowered.rlim_cur = 40;
    ::setrlimit(RLIMIT_NOFILE, &lowered);
    std::deque<std::byte> bytes(files.size());
    std::deque<Read> reads(files.size());
    std::vector<Read*> submitted;
    for (std::size_t i = 0; i < files.size(); ++i) {
      reads[i].file = &files[i];
      reads[i].offset = i * 5000;
      reads[i].size = 1;
      reads[i].destination = &bytes[i];
      submitted.push_back(&reads[i]);
    }
    channel->submit(submitted);
    std::vector<Read*> done(64);
    for (std::size_t ended = 0; ended < files.size();) ended += channel->wait(done, std::chrono::seconds(1));
    ::setrlimit(RLIMIT_NOFILE, &before);
    for (std::size_t i = 0; i < files.size(); ++i) {
      EXPECT_FALSE(reads[i].error) << i;
      EXPECT_EQ(bytes[i], byte_at(reads[i].offset)) << i;
    }
  }
}

}  // namespace
}  // namespace penstock
