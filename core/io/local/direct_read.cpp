#include "core/io/local/direct_read.h"

#include "core/base/error.h"
#include "core/io/local/file_reads.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>

namespace penstock {
namespace {

// Buffers of this size are kept for the next read; larger ones are as quickly made as they are read into.
constexpr std::uint64_t kMostKeptBytes = 128 << 10;

std::uint64_t round_up(std::uint64_t bytes) {
  return (bytes + DirectRead::kAlign - 1) / DirectRead::kAlign * DirectRead::kAlign;
}

}  // namespace

void DirectRead::ensure(std::uint64_t bytes) {
  if (buffer_bytes_ >= bytes) return;
  buffer_.reset();
  buffer_bytes_ = 0;
  buffer_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlign, bytes)));
  if (!buffer_) throw std::bad_alloc();
  buffer_bytes_ = bytes;
}

void DirectRead::plan(std::span<Read* const> run) {
  const Read& first = *run.front();
  offset_ = first.offset / kAlign * kAlign;
  needed_ = first.offset - offset_ + run_bytes(run);
  const std::uint64_t blocks = round_up(needed_);
  in_place_ =
      run.size() == 1 && blocks == first.size && reinterpret_cast<std::uintptr_t>(first.destination) % kAlign == 0;
  if (!in_place_) ensure(blocks);
  piece_ = {in_place_ ? first.destination : buffer_.get(), blocks};
}

void DirectRead::finish(int fd, std::span<Read* const> run, int result) {
  const Read& first = *run.front();
  if (result < 0 && result != -EINTR && result != -EAGAIN) {
    raise_system(-result,
                 fmt::format("a direct read of {} bytes at offset {}", with_commas(needed_), with_commas(offset_)),
                 first.file->path());
  }
  read_rest(fd, first, result < 0 ? 0 : static_cast<std::uint64_t>(result));
  if (!in_place_) scatter(run);
  if (buffer_bytes_ <= kMostKeptBytes) return;
  buffer_.reset();
  buffer_bytes_ = 0;
}

// A read that was cut short goes on at the block in which it ended.
void DirectRead::read_rest(int fd, const Read& first, std::uint64_t got) const {
  auto* memory = static_cast<std::byte*>(piece_.iov_base);
  while (got < needed_) {
    const std::uint64_t from = got / kAlign * kAlign;
    const ssize_t more = ::pread(fd, memory + from, piece_.iov_len - from, static_cast<off_t>(offset_ + from));
    if (more < 0 && errno == EINTR) continue;
    if (more < 0) {
      const int error = errno;
      raise_system(error, fmt::format("a direct read at offset {}", with_commas(offset_ + from)), first.file->path());
    }
    if (from + static_cast<std::uint64_t>(more) <= got) {
      refuse_end(fd, first);
    }
    got = from + static_cast<std::uint64_t>(more);
  }
}

void DirectRead::scatter(std::span<Read* const> run) const {
  for (const Read* read : run) {
    std::copy_n(buffer_.get() + (read->offset - offset_), read->size, read->destination);
  }
}

}  // namespace penstock
