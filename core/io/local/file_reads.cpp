#include "core/io/local/file_reads.h"

#include "core/base/error.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace penstock {

void check_range(const Read& read) {
  if (read.offset <= read.file->bytes && read.size <= read.file->bytes - read.offset) return;
  raise(ErrorKind::Corruption, "{}: a read of {} bytes at offset {} passes the end of the file, {} bytes",
        read.file->path(), with_commas(read.size), with_commas(read.offset), with_commas(read.file->bytes));
}

void refuse_end(int fd, const Read& read) {
  struct stat status {};
  const auto now = ::fstat(fd, &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : UINT64_MAX;
  const bool known = now < read.offset + read.size;  // else it has grown again
  raise(ErrorKind::Corruption, "{}: the file ends{} before a read of {} bytes at offset {} does; it had {} bytes",
        read.file->path(), known ? fmt::format(" at offset {},", with_commas(now)) : "", with_commas(read.size),
        with_commas(read.offset), with_commas(read.file->bytes));
}

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

std::size_t fill_pieces(std::span<Read* const> run, std::uint64_t skip, Pieces& pieces) {
  std::size_t count = 0;
  for (const Read* read : run) {
    const std::uint64_t skipped = std::min(skip, read->size);
    skip -= skipped;
    if (skipped == read->size && read->size > 0) continue;
    pieces[count++] = {read->destination + skipped, read->size - skipped};
  }
  return count;
}

std::uint64_t run_bytes(std::span<Read* const> run) {
  return run.back()->offset + run.back()->size - run.front()->offset;
}

bool is_inside(std::span<Read* const> run) {
  const std::uint64_t end = run.back()->offset + run.back()->size;
  return end <= run.front()->file->bytes && run.front()->offset <= end;
}

void read_fully(int fd, Read& read) {
  check_range(read);
  std::uint64_t done = 0;
  while (done < read.size) {
    const ssize_t got = ::pread(fd, read.destination + done, read.size - done, static_cast<off_t>(read.offset + done));
    if (got > 0) {
      done += static_cast<std::uint64_t>(got);
      if (done < read.size) ++read.retries;
    } else if (got == 0) {
      refuse_end(fd, read);
    } else if (errno != EINTR) {
      const int error = errno;
      raise_system(error,
                   fmt::format("a read of {} bytes at offset {}", with_commas(read.size), with_commas(read.offset)),
                   read.file->path());
    } else {
      ++read.retries;
    }
  }
}

void read_each(int fd, std::span<Read* const> run) noexcept {
  for (Read* read : run) {
    try {
      read_fully(fd, *read);
    } catch (...) {
      read->fail(present_error());
    }
  }
}

std::uint64_t read_cached(int fd, std::span<Read* const> run) noexcept {
  Pieces pieces;
  const std::size_t count = fill_pieces(run, 0, pieces);
  const ssize_t got =
      ::preadv2(fd, pieces.data(), static_cast<int>(count), static_cast<off_t>(run.front()->offset), RWF_NOWAIT);
  return got > 0 ? static_cast<std::uint64_t>(got) : 0;
}

void fail_all(std::span<Read* const> run) noexcept {
  const std::exception_ptr error = present_error();
  for (Read* read : run) read->fail(error);
}

void leave_all(std::span<Read* const> run) noexcept {
  for (Read* read : run) read->outcome = Outcome::NotAtHand;
}

}  // namespace penstock
