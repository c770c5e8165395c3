// Reads that fail in the ring. This process's own memory, which Linux shows as a file, is one whose reads give EIO
// wherever no memory is mapped: a disk with bad blocks, without the disk.
#include "core/io/local/uring_channel.h"

#include "core/io/local/fd_cache.h"
#include "core/io/local/ring.h"
#include "tests/native/core/io/wanted_read.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstring>

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

namespace penstock::testing {
namespace {

/// Pages of memory with content_of() by address, of which one is taken out.
class Pages {
 public:
  Pages(std::size_t count, std::size_t missing) : bytes_(count * kPage) {
    void* memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(memory, MAP_FAILED);
    at_ = static_cast<unsigned char*>(memory);
    for (std::size_t i = 0; i < bytes_; ++i) at_[i] = byte_at(offset() + i, 0);
    // An empty file lies there from now on: the place stays taken, but has no memory.
    const int fd = ::memfd_create("empty", MFD_CLOEXEC);
    EXPECT_NE(::mmap(at_ + missing * kPage, kPage, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0), MAP_FAILED);
    ::close(fd);
  }
  ~Pages() { ::munmap(at_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  /// Where a page lies in the memory's file.
  [[nodiscard]] std::uint64_t offset(std::size_t page = 0) const {
    return reinterpret_cast<std::uint64_t>(at_) + page * kPage;
  }

 private:
  std::size_t bytes_;
  unsigned char* at_ = nullptr;
};

class UringChannelErrors : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (const int why = Ring::refusal(); why != 0) GTEST_SKIP() << "io_uring is refused here: " << std::strerror(why);
    struct stat status {};
    EXPECT_EQ(::stat(kMemory, &status), 0);
    memory_inode = status.st_ino;
  }
  void TearDown() override { memory_inode = 0; }

  /// Those that are `bad` get the device's error, all others their bytes.
  template <typename IsBad>
  void expect(std::deque<WantedRead>& wanted, const IsBad& is_bad) {
    UringChannel channel(std::make_shared<ProcessFdCache>(4, GetParam() ? Access::Direct : Access::Buffered),
                         GetParam());
    run(channel, wanted);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (!is_bad(i)) {
        EXPECT_TRUE(wanted[i].right(0)) << i << wanted[i].message();
        continue;
      }
      const Error error = wanted[i].error();
      EXPECT_EQ(error.kind(), ErrorKind::IoError);
      EXPECT_EQ(error.error_number(), EIO);
      const std::string words = error.what();
      for (const char* part : {kMemory, "offset", "Input/output error"}) {
        EXPECT_NE(words.find(part), std::string::npos) << words;
      }
    }
  }

  const File memory_{kMemory, kMemoryBytes};
};

INSTANTIATE_TEST_SUITE_P(, UringChannelErrors, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Direct" : "Uring"; });

TEST_P(UringChannelErrors, AReadThatTheDeviceFailsIsAnErrorOfItsOwnAmongMoreThanTheRingHolds) {
  const Pages pages(2, 1);
  std::deque<WantedRead> wanted;
  for (std::size_t i = 0; i < 200; ++i) wanted.emplace_back(memory_, pages.offset(i % 2) + 8, 16);
  expect(wanted, [](std::size_t i) { return i % 2 == 1; });
}

// The ring gives EIO for the first, and what comes before it for the others.
TEST_P(UringChannelErrors, AmongNeighboursReadTogetherOnlyThoseThatFailHaveTheError) {
  for (const std::size_t bad : {0, 1, 2}) {
    const Pages pages(3, bad);
    std::deque<WantedRead> wanted;
    for (std::size_t page = 0; page < 3; ++page) wanted.emplace_back(memory_, pages.offset(page), kPage);
    expect(wanted, [&](std::size_t i) { return i == bad; });
  }
}

}  // namespace
}  // namespace penstock::testing
