// Reading through io_uring: what is not in the page cache, more than the ring holds, and where the kernel refuses it.
#include "core/io/local/ring.h"

#include "tests/native/core/io/in_child.h"
#include "tests/native/core/io/local/dropped_file.h"
#include "tests/native/core/io/local/ways_to_read.h"
#include "tests/native/message_of.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace penstock::testing {
namespace {

constexpr std::uint64_t kFileBytes = 1 << 20;

class RingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const int why = Ring::refusal(); why != 0) GTEST_SKIP() << "io_uring is refused here: " << std::strerror(why);
  }

  /// Reads `count` ranges of the file at once; whether each is right.
  [[nodiscard]] bool read_many(Channel& channel, std::uint64_t count, std::uint64_t bytes) const {
    std::deque<WantedRead> wanted;
    for (std::uint64_t i = 0; i < count; ++i) {
      wanted.emplace_back(dropped_.file(), i * 7919 * 13 % (kFileBytes - bytes), bytes);
    }
    run(channel, wanted);
    return std::all_of(wanted.begin(), wanted.end(), [](const WantedRead& one) { return one.right(0); });
  }

  const DroppedFile dropped_{kFileBytes};
};

TEST_F(RingTest, MoreReadsThanTheRingHoldsFromTheDeviceAndFromThePageCache) {
  for (const Reader reader : {Reader::Uring, Reader::Direct}) {
    const auto channel = open_by(LocalStore(), reader);
    for (const std::uint64_t bytes : {1, 511, 4096, 10'000}) {
      static_cast<void>(dropped_.drop());
      EXPECT_TRUE(read_many(*channel, 500, bytes)) << bytes;
      EXPECT_TRUE(read_many(*channel, 500, bytes)) << bytes;
    }
  }
}

TEST_F(RingTest, AWakeOfAnotherThreadEndsAWaitAlsoOneThatBeginsLater) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  Ring ring(4);
  char byte = 0;
  const iovec piece{&byte, 1};
  ring.read(pipe[0], std::span(&piece, 1), 0, &byte);  // nothing comes
  std::array<Ring::Completion, 4> done;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 3; ++i) {
    std::thread waker([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      ring.wake();
    });
    EXPECT_EQ(ring.collect(done, std::chrono::seconds(30)), 0U);
    waker.join();
  }
  ring.wake();
  EXPECT_EQ(ring.collect(done, std::chrono::nanoseconds(0)), 0U);
  EXPECT_EQ(ring.collect(done, std::chrono::seconds(30)), 0U);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  ASSERT_EQ(::write(pipe[1], "x", 1), 1);
  while (ring.under_way() > 0) ring.collect(done, std::chrono::seconds(1));
  EXPECT_EQ(done[0].tag, &byte);
  for (const int fd : pipe) ::close(fd);
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

TEST_F(RingTest, WhereTheKernelRefusesARingAutoIsPreadAndTheOthersSaySoAndReadOnIfTheyHadOne) {
  for (const unsigned call : {SYS_io_uring_setup, SYS_io_uring_enter}) {  // at once, or when it is to read
    EXPECT_TRUE(in_child([&] {
      refuse(call);
      LocalStore store;
      for (const Reader reader : {Reader::Uring, Reader::Direct}) {
        expect_error([&] { open_by(store, reader); }, ErrorKind::InvalidArgument, "io_uring is refused here");
      }
      return !HasFailure() && store.name() == "pread" && read_many(*open_by(store, Reader::Auto), 10, 100);
    })) << call;
  }
  for (const Reader reader : {Reader::Uring, Reader::Direct}) {
    EXPECT_TRUE(in_child([&] {
      const auto channel = open_by(LocalStore(), reader);
      bool right = read_many(*channel, 100, 5000);
      refuse(SYS_io_uring_enter);
      static_cast<void>(dropped_.drop());
      for (int i = 0; i < 3; ++i) right = right && read_many(*channel, 200, 5000);
      return right;
    }));
  }
}

TEST_F(RingTest, WhereNoDescriptorIsLeftForARingAutoReadsByPread) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "UndefinedBehaviorSanitizer needs a descriptor to look at an object";
#endif
  EXPECT_TRUE(in_child([&] {
    LocalStore store(2);
    const bool ring = store.name() == "uring";
    std::vector<int> hogs;
    for (int fd = ::dup(0); fd >= 0; fd = ::dup(0)) hogs.push_back(fd);
    ::close(hogs.back());  // one for the file
    return ring && read_many(*open_by(store, Reader::Auto), 10, 100);
  }));
}

TEST_F(RingTest, ManyFilesUnderWayStayWithinTheLimitOfDescriptors) {
  std::deque<File> files;
  for (int i = 0; i < 200; ++i) {
    files.emplace_back(dropped_.file().path() + "-" + std::to_string(i), kFileBytes);
    std::filesystem::create_hard_link(dropped_.file().path(), files.back().path());
  }
  for (const Reader reader : {Reader::Uring, Reader::Direct}) {
    static_cast<void>(dropped_.drop());
    const auto channel = open_by(LocalStore(10), reader);
    const FileLimit limit(40);
    std::deque<WantedRead> wanted;
    for (const File& file : files) wanted.emplace_back(file, wanted.size() * 5000, 1);
    run(*channel, wanted);
    for (const WantedRead& one : wanted) EXPECT_TRUE(one.right(0)) << one.message();
  }
  for (const File& file : files) std::filesystem::remove(file.path());
}

}  // namespace
}  // namespace penstock::testing
