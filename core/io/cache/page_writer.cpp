#include "core/io/cache/page_writer.h"

#include "core/io/cache/block_share.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

namespace penstock {
namespace {

constexpr std::size_t kMostPieces = 64;

// A sparse file of exactly this size, to be written; -1 with errno.
int open_sized(const std::string& path, std::uint64_t bytes) {
  int fd = -1;
  do {
    fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) return fd;
  struct stat status {};
  const bool is_sized = ::fstat(fd, &status) == 0 && static_cast<std::uint64_t>(status.st_size) == bytes;
  if (is_sized || ::ftruncate(fd, static_cast<off_t>(bytes)) == 0) return fd;
  const int error = errno;
  ::close(fd);
  errno = error;
  return -1;
}

bool write_fully(int fd, std::span<iovec> parts, std::uint64_t offset) {
  while (!parts.empty()) {
    const ssize_t put = ::pwritev(fd, parts.data(), static_cast<int>(parts.size()), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    offset += static_cast<std::uint64_t>(put);
    auto left = static_cast<std::size_t>(put);
    while (!parts.empty() && left >= parts.front().iov_len) {
      left -= parts.front().iov_len;
      parts = parts.subspan(1);
    }
    if (left > 0) {
      parts.front().iov_base = static_cast<std::byte*>(parts.front().iov_base) + left;
      parts.front().iov_len -= left;
    }
  }
  return true;
}

bool write_pieces(int fd, std::uint64_t begin, std::uint64_t end, std::span<const CachePiece> pieces) {
  std::array<iovec, kMostPieces> parts;
  std::size_t count = 0;
  std::uint64_t from = begin;
  for (const CachePiece& piece : pieces) {
    const std::uint64_t first = std::max(piece.begin, begin);
    const std::uint64_t last = std::min(piece.end, end);
    if (first >= last) continue;
    if (count == parts.size()) {
      if (!write_fully(fd, parts, from)) return false;
      from = first;
      count = 0;
    }
    parts[count++] = {piece.at + (first - piece.begin), last - first};
  }
  return write_fully(fd, std::span(parts).first(count), from);
}

}  // namespace

bool drop_pages(const CachedFile& file, std::uint64_t offset, std::uint64_t size) {
  const std::uint64_t first = offset / kCachePage;
  const std::uint64_t pages = file.sums.bytes / sizeof(std::uint32_t);
  const std::uint64_t end = std::min((offset + size + kCachePage - 1) / kCachePage, pages);
  if (first >= end) return false;
  const int fd = ::open(file.sums.path().c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return false;
  std::vector<std::uint32_t> sums(end - first);  // zeros: pages that are not kept
  iovec part{sums.data(), sums.size() * sizeof(std::uint32_t)};
  const bool are_gone = write_fully(fd, std::span(&part, 1), first * sizeof(std::uint32_t));
  ::close(fd);
  return are_gone;
}

PageWriter::~PageWriter() {
  for (Open& each : open_) close(each);
}

void PageWriter::close(Open& open) noexcept {
  if (open.data >= 0) ::close(open.data);
  if (open.sums >= 0) ::close(open.sums);
  open = {};
}

PageWriter::Open* PageWriter::open(CachedFile& file) {
  for (Open& each : open_) {
    if (each.file == &file) return &each;
  }
  Open& place = open_[next_++ % open_.size()];
  close(place);
  const std::string path = file.data.path();
  place.data = open_sized(path, file.data.bytes);
  if (place.data < 0 && errno == ENOENT) {  // the cache was cleared
    (void)::mkdir(path.substr(0, path.rfind('/')).c_str(), 0700);
    place.data = open_sized(path, file.data.bytes);
  }
  if (place.data >= 0) place.sums = open_sized(file.sums.path(), file.sums.bytes);
  if (place.sums < 0) {
    const int error = errno;
    close(place);
    errno = error;
    return nullptr;
  }
  place.file = &file;
  file.is_there.store(true, std::memory_order_relaxed);
  return &place;
}

bool PageWriter::write(CachedFile& file, std::uint64_t begin, std::uint64_t end, std::span<const CachePiece> pieces) {
  if (is_stopped()) return false;
  sums_.clear();
  append_page_sums(pieces, begin, end, sums_);
  const std::uint64_t first = begin / kCachePage * sizeof(std::uint32_t);
  iovec sums{sums_.data(), sums_.size() * sizeof(std::uint32_t)};
  errno = 0;
  const Open* const open = this->open(file);
  if (open != nullptr && write_pieces(open->data, begin, end, pieces) &&
      write_fully(open->sums, std::span(&sums, 1), first)) {
    counts_.filled.fetch_add(sums_.size(), std::memory_order_relaxed);
    return true;
  }
  counts_.failed.fetch_add(1, std::memory_order_relaxed);
  // Descriptors come back; a full disk may too, but asking it at each read would cost more than it saves.
  const int error = errno == 0 ? EIO : errno;
  if (error != EMFILE && error != ENFILE) counts_.stopped_by.store(error, std::memory_order_relaxed);
  return false;
}

}  // namespace penstock
