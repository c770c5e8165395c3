#include "core/io/local/open_file.h"

#include "core/base/error.h"
#include "core/io/changed_file.h"
#include "core/io/local/links.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <new>
#include <string>
#include <system_error>

namespace penstock {
namespace {

// What an empty file, which cannot be mapped, is mapped to.
constexpr std::byte kNothing{};

// `open` takes the flags.
template <typename Open>
int open_retrying(Open open, bool direct) {
  // O_NONBLOCK: a FIFO in the place of a file must not hang us; it means nothing for regular files. O_NOATIME: the time
  // of access costs each read of the page cache 3 %, and writes; who does not own the file may not ask for it.
  int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOATIME | (direct ? O_DIRECT : 0);
  for (;;) {
    const int fd = open(flags);
    if (fd >= 0) return fd;
    if (errno == EPERM && (flags & O_NOATIME) != 0) {
      flags &= ~O_NOATIME;
    } else if (errno != EINTR) {
      return fd;
    }
  }
}

// A dataset's file where it lies if nothing on the way to it is a link: then it needs no further look at links, which
// costs more than opening it. -1 where that cannot be had, for whatever reason.
int open_without_links(const std::string& path, bool direct) {
  if (path.empty()) return -1;
  const auto open = [&](int flags) {
    open_how how{};
    how.flags = static_cast<unsigned>(flags);
    how.resolve = RESOLVE_NO_SYMLINKS;
    return static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof(how)));
  };
  return open_retrying(open, direct);
}

[[noreturn]] void refuse_kind(const File& file) {
  raise(ErrorKind::Corruption, "{}: not a regular file", file.path());
}

FileStamp stamp_of(const struct stat& status) noexcept {
  return {status.st_ino, status.st_mtim.tv_sec * std::int64_t{1'000'000'000} + status.st_mtim.tv_nsec};
}

struct stat check_opened(int fd, const File& file) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) raise_system(errno, "cannot be examined", file.path());
  if (!S_ISREG(status.st_mode)) refuse_kind(file);
  const FileStamp stamp = file.stamp();
  if (stamp != FileStamp{} && stamp != stamp_of(status)) throw ChangedFile(file.path());
  const auto bytes = static_cast<std::uint64_t>(status.st_size);
  if (bytes != file.bytes) {
    raise(ErrorKind::Corruption, "{}: {} bytes, the manifest says {}", file.path(), with_commas(bytes),
          with_commas(file.bytes));
  }
  return status;
}

// The kernel tells the state of a file's pages to those who may write to it or own it.
bool may_know_pages(const struct stat& status, const File& file) {
  return ::geteuid() == status.st_uid || ::faccessat(AT_FDCWD, file.path().c_str(), W_OK, AT_EACCESS) == 0;
}

bool is_of_room(int error, Access access) {
  return error == EMFILE || error == ENFILE || (error == ENOMEM && access == Access::Mapped);
}

// Empty, with errno, where there is no room for it.
OpenFile map(int fd, const File& file, bool tells) {
  if (file.bytes == 0) return {-1, &kNothing, 0, tells};
  void* const mapped = ::mmap(nullptr, file.bytes, PROT_READ, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) {
    if (!is_of_room(errno, Access::Mapped)) {
      raise_system(errno, "cannot be mapped; use another reader than \"mmap\"", file.path());
    }
    return {};
  }
  (void)::madvise(mapped, file.bytes, MADV_RANDOM);  // for the reason that is given below
  return {-1, static_cast<const std::byte*>(mapped), file.bytes, tells};
}

OpenFile checked(int fd, const File& file, Access access, bool without_links) {
  const struct stat status = check_opened(fd, file);
  if (!without_links) check_links(fd, file);
  // Windows are read at random: readahead would fetch bytes that are not used. Advice; a refusal changes nothing.
  (void)::posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
  OpenFile opened = access == Access::Mapped ? map(fd, file, may_know_pages(status, file)) : OpenFile{fd};
  opened.stamp = stamp_of(status);
  return opened;
}

}  // namespace

OpenFile open_file(const File& file, Access access) {
  const bool direct = access == Access::Direct;
  int fd = open_without_links(file.real_path(), direct);
  const bool without_links = fd >= 0;
  if (fd < 0) {
    const std::string path = file.path();
    fd = open_retrying([&](int flags) { return ::open(path.c_str(), flags); }, direct);
  }
  if (fd < 0) {
    if (is_of_room(errno, access)) return {};
    if (errno == EINVAL && access == Access::Direct) {
      std::error_code error;
      const bool is_regular = std::filesystem::is_regular_file(file.path(), error);
      if (error) raise_system(error.value(), "read", file.path());
      if (!is_regular) refuse_kind(file);
      raise_system(EINVAL, "its file system does not read past the page cache; use another reader than \"direct\"",
                   file.path());
    }
    const char* const what = errno == ENOENT ? "cannot be opened; a dataset that was annotated, moved or written again "
                                               "since it was opened is to be opened anew, any other copied again"
                                             : "cannot be opened";
    raise_system(errno, what, file.path());
  }
  OpenFile opened;
  try {
    opened = checked(fd, file, access, without_links);
  } catch (...) {
    ::close(fd);
    throw;
  }
  if (opened.fd < 0) {
    const int error = errno;
    ::close(fd);
    errno = error;
  }
  return opened;
}

bool is_another(const File& file, const FileStamp& opened) noexcept {
  try {
    std::string path = file.real_path();  // where it would be opened again
    if (path.empty()) path = file.path();
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) return false;
    return stamp_of(status) != opened || static_cast<std::uint64_t>(status.st_size) != file.bytes;
  } catch (const std::bad_alloc&) {
    return false;  // there is a next time
  }
}

void close_file(const OpenFile& file) noexcept {
  if (file.fd >= 0) ::close(file.fd);
  if (file.size > 0) ::munmap(const_cast<std::byte*>(file.bytes), file.size);
}

}  // namespace penstock
