#include "core/io/local/ring.h"

#include "core/base/error.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

namespace penstock {
namespace {

// Completions are worked off when this thread enters the kernel anyway, not by interrupting it (Linux 5.19).
int set_up(unsigned entries, io_uring& ring) {
  int error = io_uring_queue_init(entries, &ring, IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG);
  if (error == -EINVAL) error = io_uring_queue_init(entries, &ring, 0);
  return error;
}

}  // namespace

// An eventfd's counter, through a ring of its own. Setting a ring up says little: containers may refuse its use later.
// An eventfd, since its reads need no helper thread of the kernel.
int Ring::refusal() {
  const int fd = ::eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd < 0) return errno;
  int error = 0;
  try {
    eventfd_t value = 0;
    Ring ring(1);
    const iovec piece{&value, sizeof value};
    ring.read(fd, std::span(&piece, 1), 0, &value);
    Ring::Completion done;
    for (int i = 0; error == 0 && ring.under_way() > 0; ++i) {
      const bool ended = ring.collect(std::span(&done, 1), std::chrono::milliseconds(100)) > 0;
      if (ended && value != 1) error = done.result < 0 ? -done.result : EIO;
      if (i == 10) error = ETIMEDOUT;
    }
  } catch (const Error& refused) {
    error = refused.error_number();
  } catch (...) {
    ::close(fd);
    throw;
  }
  ::close(fd);
  return error;
}

Ring::Ring(unsigned depth) : depth_(depth) {
  prepared_.reserve(depth + 1);
  const int error = set_up(depth + 1, ring_);  // one for the wake
  if (error < 0) raise_system(-error, "cannot be set up", "io_uring");
  wake_fd_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_fd_ < 0) {
    const int number = errno;
    io_uring_queue_exit(&ring_);
    raise_system(number, "cannot be made", "eventfd");
  }
}

Ring::~Ring() {
  io_uring_queue_exit(&ring_);
  ::close(wake_fd_);
}

void Ring::read(int fd, std::span<const iovec> pieces, std::uint64_t offset, void* tag) {
  io_uring_sqe* entry = io_uring_get_sqe(&ring_);  // there is one: at most depth_ + 1 are prepared
  if (pieces.size() == 1) {
    const auto bytes = static_cast<unsigned>(std::min<std::size_t>(pieces[0].iov_len, 1U << 30));
    io_uring_prep_read(entry, fd, pieces[0].iov_base, bytes, offset);
  } else {
    io_uring_prep_readv(entry, fd, pieces.data(), static_cast<unsigned>(pieces.size()), offset);
  }
  io_uring_sqe_set_data(entry, tag);
  prepared_.push_back(tag);
  ++under_way_;
}

void Ring::arm_wake() {
  if (wake_armed_) return;
  io_uring_sqe* entry = io_uring_get_sqe(&ring_);
  io_uring_prep_poll_add(entry, wake_fd_, POLLIN);
  io_uring_sqe_set_data(entry, this);
  prepared_.push_back(this);
  wake_armed_ = true;
}

void Ring::wake() const noexcept {
  static_cast<void>(eventfd_write(wake_fd_, 1));  // fails only where it is readable already
}

// EAGAIN and EBUSY: the kernel is short of memory or wants completions collected first; the entries stay prepared.
void Ring::flush() {
  while (!prepared_.empty() && broken_ == 0) {
    const int taken = io_uring_submit(&ring_);
    if (taken > 0) {
      prepared_.erase(prepared_.begin(), prepared_.begin() + taken);
    } else if (taken == -EAGAIN || taken == -EBUSY) {
      return;
    } else if (taken != -EINTR) {
      broken_ = taken < 0 ? -taken : EIO;
    }
  }
}

// What a broken ring was never told of.
std::size_t Ring::give_back(std::span<Completion> done) {
  std::size_t count = 0;
  while (broken_ != 0 && count < done.size() && !prepared_.empty()) {
    if (prepared_.back() != this) {
      done[count++] = {prepared_.back(), -broken_};
      --under_way_;
    }
    prepared_.pop_back();
  }
  return count;
}

std::size_t Ring::reap(std::span<Completion> done) {
  std::size_t count = 0;
  io_uring_cqe* entry = nullptr;
  while (count < done.size() && io_uring_peek_cqe(&ring_, &entry) == 0) {
    void* tag = io_uring_cqe_get_data(entry);
    const int result = entry->res;
    io_uring_cqe_seen(&ring_, entry);
    if (tag == this) {
      wake_armed_ = false;
      woken_ = true;
      eventfd_t ignored = 0;
      static_cast<void>(eventfd_read(wake_fd_, &ignored));
    } else {
      done[count++] = {tag, result};
      --under_way_;
    }
  }
  return count;
}

std::size_t Ring::collect(std::span<Completion> done, std::chrono::nanoseconds patience) {
  const bool waits = patience.count() > 0 && under_way_ > 0;
  if (waits && broken_ == 0) arm_wake();
  flush();
  std::size_t count = reap(done);
  count += give_back(done.subspan(count));
  if (!waits || std::exchange(woken_, false) || count > 0) return count;
  if (broken_ != 0) {  // what it took before still completes, but it cannot be waited for
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(patience, std::chrono::milliseconds(1)));
    return reap(done);
  }
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(patience);
  __kernel_timespec timeout{seconds.count(), (patience - seconds).count()};
  io_uring_cqe* entry = nullptr;
  const int error = io_uring_wait_cqe_timeout(&ring_, &entry, &timeout);
  if (error < 0 && error != -ETIME && error != -EINTR && error != -EAGAIN && error != -EBUSY) broken_ = -error;
  count = reap(done);
  woken_ = false;
  return count;
}

}  // namespace penstock
