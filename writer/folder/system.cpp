#include "writer/folder/system.h"

#include "core/base/error.h"
#include "core/io/local/links.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <random>

namespace penstock::writer {

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

void Descriptor::reset() noexcept {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

void Descriptor::close(const std::string& path) {
  // Linux frees the descriptor whatever close() says, so it is never repeated; EINTR says nothing about the data.
  if (fd_ >= 0 && ::close(std::exchange(fd_, -1)) != 0 && errno != EINTR) raise_system(errno, "close", path);
}

Descriptor open_folder(int at, const std::string& name, const std::string& path) {
  Descriptor folder(::openat(at, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0) raise_system(errno, "open folder", path);
  return folder;
}

Descriptor create_file(int at, const std::string& name, const std::string& path) {
  Descriptor file(::openat(at, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file.get() < 0) raise_system(errno, "create", path);
  return file;
}

std::pair<Descriptor, std::uint64_t> open_regular(const std::string& path) {
  // O_NONBLOCK: opening a FIFO must not wait for its writer.
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) raise_system(errno, "open", path);
  check_links(path, Links::BelowParent);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) raise_system(errno, "fstat", path);
  if (!S_ISREG(status.st_mode)) raise(ErrorKind::Corruption, "{}: not a regular file", path);
  return {std::move(file), static_cast<std::uint64_t>(status.st_size)};
}

void write_all(int fd, std::span<const std::byte> bytes, std::uint64_t offset, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(fd, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) {
      raise_system(wrote < 0 ? errno : EIO,
                   fmt::format("write of {} bytes at offset {}", with_commas(bytes.size()), with_commas(offset)), path);
    }
    bytes = bytes.subspan(static_cast<std::size_t>(wrote));
    offset += static_cast<std::uint64_t>(wrote);
  }
}

void read_exactly(int fd, std::span<std::byte> out, std::uint64_t offset, const std::string& path) {
  while (!out.empty()) {
    const ssize_t got = ::pread(fd, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) raise_system(errno, fmt::format("read at offset {}", with_commas(offset)), path);
    if (got == 0) raise(ErrorKind::Corruption, "{}: ends at {}, expected more", path, with_commas(offset));
    out = out.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
}

void start_writing(int fd, std::uint64_t offset, std::uint64_t bytes) noexcept {
  static_cast<void>(
      ::sync_file_range(fd, static_cast<off_t>(offset), static_cast<off_t>(bytes), SYNC_FILE_RANGE_WRITE));
}

void sync_file(int fd, const std::string& path) {
  if (::fsync(fd) != 0) raise_system(errno, "fsync", path);
}

void sync_folder(int fd, const std::string& path) {
  if (::fsync(fd) != 0 && errno != EINVAL) raise_system(errno, "fsync of the folder", path);
}

int rename_new(int at, const std::string& from, const std::string& to, const std::string& path) {
  int result = ::renameat2(at, from.c_str(), at, to.c_str(), RENAME_NOREPLACE);
  if (result != 0 && (errno == EINVAL || errno == ENOSYS)) {
    // A file system without RENAME_NOREPLACE. A plain rename never replaces a folder that holds something, which is
    // what a finished shard is; for the manifest the lock and this look are all that there is.
    if (::faccessat(at, to.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0) return EEXIST;
    result = ::renameat(at, from.c_str(), at, to.c_str());
  }
  if (result == 0) return 0;
  if (errno == EEXIST || errno == ENOTEMPTY) return EEXIST;
  raise_system(errno, fmt::format("rename {} to {}", from, to), path);
}

std::vector<std::string> names_in(int fd, const std::string& path) {
  // A descriptor of its own: reading a folder moves the descriptor's place.
  const int own = ::openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (own < 0) raise_system(errno, "open folder", path);
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::fdopendir(own), &::closedir);
  if (!folder) {
    const int error = errno;
    ::close(own);
    raise_system(error, "list folder", path);
  }
  std::vector<std::string> names;
  errno = 0;
  for (const dirent* entry = ::readdir(folder.get()); entry != nullptr; entry = ::readdir(folder.get())) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
    errno = 0;
  }
  if (errno != 0) raise_system(errno, "list folder", path);
  std::sort(names.begin(), names.end());
  return names;
}

bool remove_folder(int at, const std::string& name, int depth) noexcept {
  int error = 0;  // of the first entry that stays
  try {
    const Descriptor folder(::openat(at, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    if (folder.get() < 0) {
      if (errno != ENOTDIR && errno != ELOOP) return errno == ENOENT;
      return ::unlinkat(at, name.c_str(), 0) == 0;  // a file, or a link
    }
    for (const std::string& file : names_in(folder.get(), name)) {
      if (::unlinkat(folder.get(), file.c_str(), 0) == 0) continue;
      if (depth > 0 && remove_folder(folder.get(), file, depth - 1)) continue;
      if (error == 0) error = errno;
    }
  } catch (const Error& refused) {
    errno = refused.error_number();
    return false;  // the caller says what is left
  } catch (const std::exception&) {
    errno = ENOMEM;
    return false;
  }
  if (::unlinkat(at, name.c_str(), AT_REMOVEDIR) == 0) return true;
  if (error != 0) errno = error;
  return false;
}

std::string unique_suffix() {
  std::random_device random;
  const std::uint64_t number = static_cast<std::uint64_t>(random()) << 32 | random();
  return fmt::format("{}-{:016x}", ::getpid(), number);
}

}  // namespace penstock::writer
