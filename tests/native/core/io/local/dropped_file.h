// DroppedFile: a real file whose pages can be put out of the page cache, and which of them are in it.
#pragma once

#include "core/io/byte_store.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace penstock {

class DroppedFile {
 public:
  explicit DroppedFile(std::uint64_t bytes) {
    // Not in /tmp where that is memory: there nothing ever leaves the page cache.
    file_ = {(std::filesystem::current_path() / ("dropped-file-" + std::to_string(::getpid()))).string(), bytes};
    std::string content(bytes, '\0');
    for (std::uint64_t i = 0; i < bytes; ++i) content[i] = static_cast<char>(byte_at(i));
    std::ofstream(file_.path(), std::ios::binary) << content;
  }
  ~DroppedFile() { std::filesystem::remove(file_.path()); }
  DroppedFile(const DroppedFile&) = delete;
  DroppedFile& operator=(const DroppedFile&) = delete;

  [[nodiscard]] const File& file() const noexcept { return file_; }
  static std::byte byte_at(std::uint64_t i) { return static_cast<std::byte>(i * 31 + i / 4096); }

  /// How one read of the file ends, by a channel that has no other.
  Outcome read(Channel& channel, std::uint64_t offset, std::span<std::byte> into) const {
    Read one;
    one.file = &file_;
    one.offset = offset;
    one.size = into.size();
    one.destination = into.data();
    Read* const each = &one;
    channel.submit(std::span(&each, 1));
    std::array<Read*, 4> done{};
    EXPECT_EQ(channel.wait(done, std::chrono::seconds(10)), 1U);
    EXPECT_EQ(done[0], &one);
    return one.outcome;
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

}  // namespace penstock
