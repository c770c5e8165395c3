// Ring: one thread's ring of io_uring (Axboe 2019), through liburing: reads that are under way while the thread goes
// on.
//
// Each read has an owner's `tag`; completions give it back with the kernel's result. wake() may be called by any
// thread, all else by one.
#pragma once

#include <liburing.h>
#include <sys/uio.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace penstock {

class Ring {
 public:
  struct Completion {
    void* tag = nullptr;
    int result = 0;  // bytes, or -errno
  };

  /// The errno for which this process cannot have a ring that reads: found out by a real read; 0 if it can.
  static int refusal();

  /// `depth`: reads under way at most. Throws IoError if the kernel refuses.
  explicit Ring(unsigned depth);
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  [[nodiscard]] bool full() const noexcept { return under_way_ == depth_; }
  [[nodiscard]] std::size_t under_way() const noexcept { return under_way_; }

  /// Whether the kernel takes no more reads: a ring that worked may be refused later. All that was not handed to it
  /// completes with its error.
  [[nodiscard]] bool broken() const noexcept { return broken_ != 0; }

  /// Prepares a read; the pieces stay where they are until it completes. Not when full().
  void read(int fd, std::span<const iovec> pieces, std::uint64_t offset, void* tag);
  /// Hands what is prepared to the kernel, then gives completions: those that are there, or, if there are none, waits
  /// for at most `patience` for the first. wake() ends a wait: this one, or the next if there is none.
  std::size_t collect(std::span<Completion> done, std::chrono::nanoseconds patience);
  void wake() const noexcept;

 private:
  void arm_wake();
  void flush();
  std::size_t reap(std::span<Completion> done);
  std::size_t give_back(std::span<Completion> done);

  const unsigned depth_;
  io_uring ring_{};
  int wake_fd_ = -1;
  bool wake_armed_ = false;
  bool woken_ = false;           // a wake() came that has not ended a wait
  int broken_ = 0;               // errno
  std::vector<void*> prepared_;  // tags of entries that the kernel has not been told of, in order
  std::size_t under_way_ = 0;
};

}  // namespace penstock
