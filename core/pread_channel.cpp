#include "core/pread_channel.h"

#include "core/error.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace penstock {
namespace {

// Neighbours are merged into one system call up to these bounds. At 1 MiB the call's own cost (below a microsecond) is
// under 1 % of the copy, so more gains nothing; 64 pieces keep the vector in 1 KiB of stack, far below IOV_MAX (1,024).
constexpr std::size_t kMaxPieces = 64;
constexpr std::uint64_t kMaxRunBytes = 1U << 20;

void check_range(const Read& read) {
  if (read.offset <= read.file->bytes && read.size <= read.file->bytes - read.offset) return;
  raise(ErrorKind::Corruption, "{}: a read of {} bytes at offset {} passes the end of the file, {} bytes",
        read.file->path, with_commas(read.size), with_commas(read.offset), with_commas(read.file->bytes));
}

/// All of one read, from its `done`-th byte on.
void read_fully(int fd, const Read& read) {
  std::uint64_t done = 0;
  while (done < read.size) {
    const ssize_t got = ::pread(fd, read.destination + done, read.size - done, static_cast<off_t>(read.offset + done));
    if (got > 0) {
      done += static_cast<std::uint64_t>(got);
    } else if (got == 0) {
      raise(ErrorKind::Corruption, "{}: the file ends at offset {} in a read of {} bytes at offset {}; it had {} bytes",
            read.file->path, with_commas(read.offset + done), with_commas(read.size), with_commas(read.offset),
            with_commas(read.file->bytes));
    } else if (errno != EINTR) {
      const int error = errno;
      raise_system(error,
                   fmt::format("a read of {} bytes at offset {}", with_commas(read.size), with_commas(read.offset)),
                   read.file->path);
    }
  }
}

/// True if all of the run's bytes came with one call.
bool read_merged(int fd, std::span<Read* const> run) {
  std::array<iovec, kMaxPieces> pieces;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < run.size(); ++i) {
    pieces[i] = {run[i]->destination, run[i]->size};
    bytes += run[i]->size;
  }
  const ssize_t got =
      ::preadv(fd, pieces.data(), static_cast<int>(run.size()), static_cast<off_t>(run.front()->offset));
  return got >= 0 && static_cast<std::uint64_t>(got) == bytes;
}

/// How many reads from the front on are neighbours in one file.
std::size_t run_length(std::span<Read* const> reads) {
  std::uint64_t bytes = reads.front()->size;
  std::size_t length = 1;
  for (; length < std::min(reads.size(), kMaxPieces); ++length) {
    const Read& last = *reads[length - 1];
    const Read& next = *reads[length];
    if (next.file != last.file || next.offset != last.offset + last.size) break;
    if (next.size > kMaxRunBytes || bytes + next.size > kMaxRunBytes) break;
    bytes += next.size;
  }
  return length;
}

}  // namespace

void PreadChannel::submit(std::span<Read* const> reads) {
  const std::size_t needed = completed_.size() + reads.size();
  if (completed_.capacity() < needed) completed_.reserve(std::max(needed, 2 * completed_.capacity()));
  FdCache& cache = files_->current();
  if (cache.forks() != cache_forks_) {
    hints_.fill({});  // they point into the parent's cache
    cache_forks_ = cache.forks();
  }
  while (!reads.empty()) {
    const std::size_t length = run_length(reads);
    read_run(cache, reads.first(length));
    for (Read* read : reads.first(length)) completed_.push_back(read);
    reads = reads.subspan(length);
  }
}

void PreadChannel::read_run(FdCache& cache, std::span<Read* const> run) {
  const File& file = *run.front()->file;
  try {
    const FdPin pin = cache.pin(file, hint_of(file));
    const std::uint64_t end = run.back()->offset + run.back()->size;
    const bool inside = end <= file.bytes && run.front()->offset <= end;
    if (run.size() > 1 && inside && read_merged(pin.fd(), run)) return;
    // One by one: a single read, or a run that was cut short, whose error belongs to the reads that it hit alone.
    for (Read* read : run) {
      try {
        check_range(*read);
        read_fully(pin.fd(), *read);
      } catch (...) {
        read->error = std::current_exception();
      }
    }
  } catch (...) {
    for (Read* read : run) read->error = std::current_exception();
  }
}

FdHint& PreadChannel::hint_of(const File& file) {
  const auto address = reinterpret_cast<std::uintptr_t>(&file);
  return hints_[(address * 0x9E3779B97F4A7C15U) >> 56];  // Fibonacci hashing to kHints places
}

std::size_t PreadChannel::wait(std::span<Read*> done, std::chrono::nanoseconds /*timeout*/) {
  const std::size_t count = std::min(done.size(), completed_.size() - handed_out_);
  std::copy_n(completed_.begin() + static_cast<std::ptrdiff_t>(handed_out_), count, done.begin());
  handed_out_ += count;
  if (handed_out_ == completed_.size()) {
    completed_.clear();
    handed_out_ = 0;
  }
  return count;
}

}  // namespace penstock
