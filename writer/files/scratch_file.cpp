#include "writer/files/scratch_file.h"

#include "core/base/error.h"
#include "layout/dataset/format.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace penstock::writer {
namespace {

// Where the file system makes none without a name (NFS), it has one for a moment.
Descriptor create(const std::string& folder) {
  Descriptor file(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file.get() >= 0) return file;
  if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL) raise_system(errno, "make a scratch file in", folder);
  const std::string path = folder + "/" + std::string(layout::kPartialPrefix) + "scratch-" + unique_suffix();
  file = Descriptor(::open(path.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
  if (file.get() < 0) raise_system(errno, "make a scratch file in", folder);
  ::unlink(path.c_str());
  return file;
}

}  // namespace

ScratchFile::ScratchFile(const std::string& folder, std::uint64_t bytes)
    : shown_(folder + " (scratch file)"), file_(create(folder)) {
  take_room(folder, bytes);
}

ScratchFile ScratchFile::named(const std::string& path, std::uint64_t bytes) {
  Descriptor made(::open(path.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
  if (made.get() < 0) raise_system(errno, "make a scratch file", path);
  ScratchFile file(path, std::move(made));
  try {
    file.take_room(path, bytes);
  } catch (...) {
    ::unlink(path.c_str());
    throw;
  }
  return file;
}

ScratchFile ScratchFile::existing(const std::string& path) {
  Descriptor found(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (found.get() < 0) raise_system(errno, "open", path);
  return {path, std::move(found)};
}

void ScratchFile::take_room(const std::string& folder, std::uint64_t bytes) {
  if (bytes == 0) return;
  while (::fallocate(file_.get(), 0, 0, static_cast<off_t>(bytes)) != 0) {
    if (errno == EINTR) continue;
    if (errno != ENOSPC && errno != EDQUOT && errno != EFBIG) return;  // the file system has no such call
    raise_system(errno, fmt::format("put {} bytes aside (another folder for them: scratch)", with_commas(bytes)),
                 folder);
  }
}

void ScratchFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) raise_system(errno, fmt::format("write at byte {}", with_commas(offset)), shown_);
    offset += static_cast<std::uint64_t>(count);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

void ScratchFile::read_at(std::uint64_t offset, std::span<std::byte> out) const {
  read_exactly(file_.get(), out, offset, shown_);
}

void ScratchFile::want(std::uint64_t offset, std::uint64_t bytes) const noexcept {
  (void)::posix_fadvise(file_.get(), static_cast<off_t>(offset), static_cast<off_t>(bytes), POSIX_FADV_WILLNEED);
}

void ScratchFile::give_back(std::uint64_t offset, std::uint64_t bytes) noexcept {
  if (bytes == 0) return;
  (void)::fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                    static_cast<off_t>(bytes));
}

}  // namespace penstock::writer
