// DroppedFile: a real file whose pages can be put out of the page cache, and which of them are in it.
#pragma once

#include "tests/native/core/io/wanted_read.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

namespace penstock::testing {

/// Its bytes are those of content_of().
class DroppedFile {
 public:
  explicit DroppedFile(std::uint64_t bytes) {
    // Not in /tmp where that is memory: there nothing ever leaves the page cache.
    file_ = {(std::filesystem::current_path() / ("dropped-file-" + std::to_string(::getpid()))).string(), bytes};
    std::ofstream(file_.path(), std::ios::binary) << content_of(bytes);
  }
  ~DroppedFile() { std::filesystem::remove(file_.path()); }
  DroppedFile(const DroppedFile&) = delete;
  DroppedFile& operator=(const DroppedFile&) = delete;

  [[nodiscard]] const File& file() const noexcept { return file_; }

  /// How one read of it ends, by a channel that has no other. If it is done its bytes are right.
  Outcome read(Channel& channel, std::uint64_t offset, std::uint64_t bytes) const {
    WantedRead one(file_, offset, bytes);
    EXPECT_TRUE(read_one(channel, one) != Outcome::Done || one.right(0)) << offset;
    return one.read.outcome;
  }

  /// Whether the file left the page cache. Pages that the kernel is busy with stay at first.
  [[nodiscard]] bool drop() const {
    const int fd = ::open(file_.path().c_str(), O_RDONLY | O_CLOEXEC);
    ::fsync(fd);
    bool gone = false;
    for (int tries = 0; !gone && tries < 100; ++tries) {
      if (tries != 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
      const std::vector<bool> there = pages();
      gone = std::none_of(there.begin(), there.end(), [](bool page) { return page; });
    }
    ::close(fd);
    return gone;
  }

  /// For each page whether the page cache has it.
  [[nodiscard]] std::vector<bool> pages() const {
    const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    std::vector<unsigned char> states((file_.bytes + page - 1) / page, 1);
    const int fd = ::open(file_.path().c_str(), O_RDONLY | O_CLOEXEC);
    void* const mapped = ::mmap(nullptr, file_.bytes, PROT_READ, MAP_SHARED, fd, 0);
    ::close(fd);
    if (mapped != MAP_FAILED) {
      ::mincore(mapped, file_.bytes, states.data());
      ::munmap(mapped, file_.bytes);
    }
    std::vector<bool> there(states.size());
    std::transform(states.begin(), states.end(), there.begin(), [](unsigned char state) { return (state & 1U) != 0; });
    return there;
  }

 private:
  File file_;
};

}  // namespace penstock::testing
