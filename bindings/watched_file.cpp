#include "bindings/watched_file.h"

#include "core/base/error.h"
#include "core/io/changed_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace penstock::bindings {
namespace {

int own_descriptor(int fd, const std::string& path) {
  const int own = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (own < 0) raise_system(errno, "cannot be kept open", path);
  return own;
}

}  // namespace

WatchedFile::WatchedFile(int fd, std::string path)
    : path_(std::move(path)), made_(look(fd)), fd_(own_descriptor(fd, path_)) {}

WatchedFile::~WatchedFile() {
  ::close(fd_);
}

WatchedFile::State WatchedFile::look(int fd) const {
  struct stat status {};
  if (::fstat(fd, &status) != 0) raise_system(errno, "cannot be examined", path_);
  const std::int64_t modified_ns = status.st_mtim.tv_sec * std::int64_t{1'000'000'000} + status.st_mtim.tv_nsec;
  return {{status.st_ino, modified_ns}, status.st_size};
}

void WatchedFile::check_same() const {
  if (look(fd_) != made_) throw ChangedFile(path_);
}

}  // namespace penstock::bindings
