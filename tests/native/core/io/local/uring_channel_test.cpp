// Reads that fail in the ring. This process's own memory, which Linux shows as a file, is one whose reads give EIO
// wherever no memory is mapped: a disk with bad blocks, without the disk.
#include "core/io/local/uring_channel.h"

#include "core/base/error.h"
#include "core/io/local/fd_cache.h"
#include "core/io/local/ring.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdarg>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace {

constexpr const char* kMemory = "/proc/self/mem";
constexpr std::uint64_t kMemoryBytes = std::uint64_t{1} << 62;  // beyond every address
constexpr std::size_t kPage = 65'536;                           // whole pages on every machine

std::atomic<ino_t> memory_inode{0};  // 0 in all other tests: nothing is changed there

}  // namespace

// These take the place of the C library's in this executable: of itself the memory's file says that it is empty, and
// it knows no direct reads. All else is as it was.
extern "C" int fstat(int fd, struct stat* status) noexcept {
  const int result = ::fstatat(fd, "", status, AT_EMPTY_PATH);
  if (result == 0 && memory_inode != 0 && status->st_ino == memory_inode && status->st_size == 0) {
    status->st_size = static_cast<off_t>(kMemoryBytes);
  }
  return result;
}
extern "C" int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  if (std::strcmp(path, kMemory) == 0) flags &= ~O_DIRECT;
  return ::openat(AT_FDCWD, path, flags, mode);
}

namespace penstock {
namespace {

/// Pages of memory, of which some are taken out.
class Pages {
 public:
  explicit Pages(std::size_t count) : bytes_(count * kPage) {
    void* memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(memory, MAP_FAILED);
    at_ = static_cast<std::byte*>(memory);
    for (std::size_t i = 0; i < bytes_; ++i) at_[i] = byte_at(i);
  }
  ~Pages() { ::munmap(at_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  static std::byte byte_at(std::size_t i) { return static_cast<std::byte>(i * 7 + i / kPage); }
  /// An empty file lies there from now on: the place stays taken, but has no memory.
  void take_out(std::size_t page) {
    const int fd = ::memfd_create("empty", MFD_CLOEXEC);
    EXPECT_NE(::mmap(at_ + page * kPage, kPage, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0), MAP_FAILED);
    ::close(fd);
  }
  [[nodiscard]] std::uint64_t offset() const { return reinterpret_cast<std::uint64_t>(at_); }

 private:
  std::size_t bytes_;
  std::byte* at_ = nullptr;
};

class RingErrors : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto refusal = Ring::refusal()) GTEST_SKIP() << "io_uring is refused here: " << *refusal;
  }
};

int result_of(int fd, std::uint64_t offset) {
  Ring ring(1);
  std::byte byte{};
  const iovec piece{&byte, 1};
  ring.read(fd, std::span(&piece, 1), offset, &byte);
  Ring::Completion done;
  for (int i = 0; i < 10; ++i) {
    if (ring.collect(std::span(&done, 1), std::chrono::seconds(1)) > 0) return done.result;
  }
  return 0;
}

TEST_F(RingErrors, AFailedReadGivesTheSystemsNumber) {
  const int folder = ::open("/", O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(result_of(folder, 0), -EISDIR);
  ::close(folder);
  EXPECT_EQ(result_of(1'000'000, 0), -EBADF);  // no descriptor
  const int memory = ::open(kMemory, O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(result_of(memory, 0), -EIO);
  ::close(memory);
}

struct WantedPart {
  WantedPart(const File& file, std::uint64_t offset, std::uint64_t size) : buffer(size) {
    read.file = &file;
    read.offset = offset;
    read.size = size;
    read.destination = buffer.data();
  }
  std::vector<std::byte> buffer;
  Read read;
};

class UringChannelErrors : public RingErrors, public ::testing::WithParamInterface<bool> {
 protected:
  UringChannelErrors() {
    struct stat status {};
    EXPECT_EQ(::stat(kMemory, &status), 0);
    memory_inode = status.st_ino;
  }
  ~UringChannelErrors() override { memory_inode = 0; }

  void run(std::deque<WantedPart>& wanted) {
    UringChannel channel(std::make_shared<ProcessFdCache>(4, GetParam() ? Access::Direct : Access::Buffered),
                         GetParam());
    std::vector<Read*> reads;
    for (WantedPart& one : wanted) reads.push_back(&one.read);
    channel.submit(reads);
    std::vector<Read*> done(3);
    std::size_t ended = 0;
    while (const std::size_t some = channel.wait(done, std::chrono::seconds(1))) ended += some;
    EXPECT_EQ(ended, wanted.size());
  }

  void expect_error(const WantedPart& one) {
    ASSERT_TRUE(one.read.error);
    try {
      std::rethrow_exception(one.read.error);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::IoError);
      EXPECT_EQ(error.error_number(), EIO);
      const std::string words = error.what();
      EXPECT_NE(words.find(kMemory), std::string::npos) << words;
      EXPECT_NE(words.find("offset"), std::string::npos) << words;
      EXPECT_NE(words.find("Input/output error"), std::string::npos) << words;
    }
  }

  static void expect_right(const WantedPart& one, const Pages& pages) {
    EXPECT_FALSE(one.read.error);
    for (std::size_t i = 0; i < one.buffer.size(); ++i) {
      ASSERT_EQ(one.buffer[i], Pages::byte_at(one.read.offset - pages.offset() + i)) << i;
    }
  }

  const File memory_{kMemory, kMemoryBytes};
};

INSTANTIATE_TEST_SUITE_P(, UringChannelErrors, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Direct" : "Uring"; });

TEST_P(UringChannelErrors, AReadThatTheDeviceFailsIsAnErrorOfItsOwn) {
  Pages pages(8);
  pages.take_out(3);
  std::deque<WantedPart> wanted;
  for (const std::size_t page : {0, 3, 6}) wanted.emplace_back(memory_, pages.offset() + page * kPage + 100, 1'000);
  run(wanted);
  expect_right(wanted[0], pages);
  expect_error(wanted[1]);
  expect_right(wanted[2], pages);
}

TEST_P(UringChannelErrors, AmongNeighboursReadTogetherOnlyThoseThatFailHaveTheError) {
  for (const std::size_t bad :
       {0, 1, 2}) {  // the ring gives EIO for the first, and what comes before it for the others
    Pages pages(3);
    pages.take_out(bad);
    std::deque<WantedPart> wanted;
    for (std::size_t page = 0; page < 3; ++page) wanted.emplace_back(memory_, pages.offset() + page * kPage, kPage);
    run(wanted);
    for (std::size_t page = 0; page < 3; ++page) {
      if (page == bad) {
        expect_error(wanted[page]);
      } else {
        expect_right(wanted[page], pages);
      }
    }
  }
}

TEST_P(UringChannelErrors, MoreFailuresThanTheRingHoldsEndEachOnce) {
  Pages pages(2);
  pages.take_out(1);
  std::deque<WantedPart> wanted;
  for (int i = 0; i < 200; ++i) wanted.emplace_back(memory_, pages.offset() + (i % 2) * kPage + 8, 16);
  run(wanted);
  for (int i = 0; i < 200; ++i) {
    if (i % 2 == 1) {
      expect_error(wanted[static_cast<std::size_t>(i)]);
    } else {
      expect_right(wanted[static_cast<std::size_t>(i)], pages);
    }
  }
}

}  // namespace
}  // namespace penstock
