#include "core/io/local/cache_reads.h"

#include "core/io/local/file_reads.h"

#include <sys/uio.h>
#include <unistd.h>

namespace penstock {
namespace {

// After so many misses in a row the page cache is tried only now and then: the ring finds out by itself, too.
constexpr std::uint64_t kPatientMisses = 16;
constexpr std::uint64_t kTryEvery = 32;

std::uint64_t at_least_0(ssize_t got) {
  return got > 0 ? static_cast<std::uint64_t>(got) : 0;
}

}  // namespace

std::uint64_t CacheReads::read(int fd, std::span<Read* const> run) {
  const std::uint64_t bytes = run_bytes(run);
  if (bytes == 0) return 0;
  if (trusts() && run.size() == 1) return trusting_read(fd, *run.front());
  if (misses_ >= kPatientMisses && ++misses_ % kTryEvery != 0) return 0;
  Pieces pieces;
  const std::size_t count = fill_pieces(run, 0, pieces);
  const std::uint64_t got = at_least_0(
      ::preadv2(fd, pieces.data(), static_cast<int>(count), static_cast<off_t>(run.front()->offset), RWF_NOWAIT));
  if (got == bytes) {
    misses_ = 0;
    trust_.hit();
  } else {
    trust_.miss();
    ++misses_;
  }
  return got;
}

std::uint64_t CacheReads::trusting_read(int fd, const Read& read) {
  const std::uint64_t got = at_least_0(::pread(fd, read.destination, read.size, static_cast<off_t>(read.offset)));
  trust_.read();
  return got;
}

}  // namespace penstock
