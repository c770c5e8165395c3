#include "core/io/local/local_files.h"

#include "core/base/error.h"
#include "core/io/local/links.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

namespace penstock {
namespace {

struct Descriptor {
  explicit Descriptor(int opened) : fd(opened) {}
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  const int fd;
};

bool is_folder(const std::string& path, const dirent& entry) {
  if (entry.d_type != DT_UNKNOWN && entry.d_type != DT_LNK) return entry.d_type == DT_DIR;
  struct stat status {};
  return ::stat((path + "/" + entry.d_name).c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

}  // namespace

std::uint64_t local_size(const std::string& path, Links links) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) raise_system(errno, "cannot open", path);
  check_links(path, links);
  if (S_ISREG(status.st_mode)) return static_cast<std::uint64_t>(status.st_size);
  raise(ErrorKind::InvalidArgument, "{}: not a regular file but {}", path,
        S_ISDIR(status.st_mode) ? "a folder" : "a pipe or device");
}

void read_local(const std::string& path, std::uint64_t offset, std::span<std::byte> out) {
  // O_NONBLOCK: opening a pipe must not wait for its writer; it has no effect on regular files.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file.fd < 0) raise_system(errno, "cannot open", path);
  while (!out.empty()) {
    const ssize_t count = ::pread(file.fd, out.data(), out.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) raise_system(errno, "cannot read", path);
    if (count == 0) {
      raise(ErrorKind::Corruption, "{}: ends at byte {}, {} more are wanted", path, with_commas(offset),
            with_commas(out.size()));
    }
    offset += static_cast<std::uint64_t>(count);
    out = out.subspan(static_cast<std::size_t>(count));
  }
}

std::vector<std::string> list_local(const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), &::closedir);
  if (!folder && errno == ENOENT) throw Error(ErrorKind::NotFound, path + ": no such folder", ENOENT, path);
  if (!folder) raise_system(errno, "cannot open the folder", path);
  std::vector<std::string> names;
  errno = 0;
  for (const dirent* entry = ::readdir(folder.get()); entry != nullptr; entry = ::readdir(folder.get())) {
    std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(is_folder(path, *entry) ? name + "/" : std::move(name));
    errno = 0;
  }
  if (errno != 0) raise_system(errno, "cannot list the folder", path);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace penstock
