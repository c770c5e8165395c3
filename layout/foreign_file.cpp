#include "layout/foreign_file.h"

#include "core/base/error.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace penstock::layout {
namespace {
constexpr std::uint64_t kFingerprintBytes = 4096;
}  // namespace

ForeignFile::ForeignFile(std::string path) : path_(std::move(path)) {
  // O_NONBLOCK: opening a pipe must not wait for its writer; it has no effect on regular files.
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) raise_system(errno, "cannot open", path_);
  struct stat status {};
  const int failed = ::fstat(descriptor_, &status) != 0 ? errno : 0;
  if (failed == 0 && S_ISREG(status.st_mode)) {
    bytes_ = static_cast<std::uint64_t>(status.st_size);
    return;
  }
  ::close(descriptor_);
  if (failed != 0) raise_system(failed, "cannot stat", path_);
  raise(ErrorKind::InvalidArgument, "{}: {}, a regular file is wanted", path_,
        S_ISDIR(status.st_mode) ? "a folder" : "a pipe or device");
}

ForeignFile::~ForeignFile() {
  ::close(descriptor_);
}

void ForeignFile::read(std::uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t count = ::pread(descriptor_, out.data(), out.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) raise_system(errno, "cannot read", path_);
    if (count == 0) {
      raise(ErrorKind::Corruption, "{}: ends at byte {}, {} more are wanted", path_, with_commas(offset),
            with_commas(out.size()));
    }
    offset += static_cast<std::uint64_t>(count);
    out = out.subspan(static_cast<std::size_t>(count));
  }
}

std::vector<std::byte> ForeignFile::head(std::uint64_t limit) const {
  std::vector<std::byte> result(std::min(limit, bytes_));
  read(0, result);
  return result;
}

std::vector<std::byte> ForeignFile::tail(std::uint64_t limit) const {
  std::vector<std::byte> result(std::min(limit, bytes_));
  read(bytes_ - result.size(), result);
  return result;
}

void ForeignFile::add_to(Digest& digest) const {
  digest.update_u64(bytes_);
  digest.update(head(kFingerprintBytes));
  digest.update(tail(kFingerprintBytes));
}

}  // namespace penstock::layout
