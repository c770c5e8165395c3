// DirectRead: one read past the page cache (O_DIRECT), which the kernel wants aligned in file and memory.
//
// Reads the blocks that a run of neighbours lies in, into its own buffer, and copies from there; or straight to where
// the run goes if that is aligned already. One thread.
#pragma once

#include "core/io/read.h"

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>

namespace penstock {

class DirectRead {
 public:
  /// Blocks of 4,096 bytes satisfy every device and file system that is known.
  static constexpr std::uint64_t kAlign = 4096;

  /// Plans the read of `run`, which lies inside its file. Throws std::bad_alloc.
  void plan(std::span<Read* const> run);
  [[nodiscard]] const iovec& piece() const noexcept { return piece_; }
  [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }

  /// After the read gave `result` (bytes, or -errno): reads what is missing and puts all of it in its place. Throws
  /// Corruption where the file ends early, IoError of the system.
  void finish(int fd, std::span<Read* const> run, int result);

 private:
  struct Free {
    void operator()(std::byte* memory) const noexcept { std::free(memory); }
  };
  void ensure(std::uint64_t bytes);
  void read_rest(int fd, const Read& first, std::uint64_t got) const;
  void scatter(std::span<Read* const> run) const;

  std::unique_ptr<std::byte, Free> buffer_;
  std::uint64_t buffer_bytes_ = 0;
  iovec piece_{};
  std::uint64_t offset_ = 0;  // of the first block
  std::uint64_t needed_ = 0;  // bytes from there to the run's end
  bool in_place_ = false;
};

}  // namespace penstock
