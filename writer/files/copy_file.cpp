#include "writer/files/copy_file.h"

#include "core/base/error.h"
#include "writer/folder/system.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

namespace penstock::writer {
namespace {

constexpr std::uint64_t kChunkBytes = 1U << 20;

// Returns how far it came: all of it, or as far as the kernel can copy between these file systems.
std::uint64_t copy_in_kernel(int from, int to, std::uint64_t bytes) {
  std::uint64_t done = 0;
  while (done < bytes) {
    auto in = static_cast<off64_t>(done);
    const ssize_t copied = ::copy_file_range(from, &in, to, nullptr, bytes - done, 0);
    if (copied < 0 && errno == EINTR) continue;
    if (copied <= 0) return done;  // the plain copy finds the reason, if it is one
    done += static_cast<std::uint64_t>(copied);
  }
  return done;
}

void copy_bytes(int from, const std::string& from_path, int to, const std::string& path, std::uint64_t at,
                std::uint64_t bytes) {
  std::vector<std::byte> buffer(std::min(kChunkBytes, bytes - at));
  while (at < bytes) {
    const std::span<std::byte> part = std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), bytes - at));
    read_exactly(from, part, at, from_path);
    write_all(to, part, at, path);
    at += part.size();
  }
}

}  // namespace

void copy_file(const std::string& from, std::uint64_t bytes, int at, const std::string& name, const std::string& path) {
  const auto [source, size] = open_regular(from);
  if (size != bytes) {
    raise(ErrorKind::Corruption, "{}: {} bytes, the manifest says {}", from, with_commas(size), with_commas(bytes));
  }
  // Synced when it was published; but it may have been copied since, by who syncs nothing.
  if (::linkat(AT_FDCWD, from.c_str(), at, name.c_str(), AT_SYMLINK_FOLLOW) == 0) return sync_file(source.get(), from);
  Descriptor file = create_file(at, name, path);
  if (::ioctl(file.get(), FICLONE, source.get()) != 0) {
    const std::uint64_t done = copy_in_kernel(source.get(), file.get(), bytes);
    if (done < bytes) copy_bytes(source.get(), from, file.get(), path, done, bytes);
  }
  sync_file(file.get(), path);
  file.close(path);
}

void copy_files(const std::string& from, const layout::ShardFiles& files, int at, const std::string& path) {
  const auto copy = [&](const std::string& name, std::uint64_t bytes) {
    copy_file(from + "/" + name, bytes, at, name, path + "/" + name);
  };
  for (const auto& [name, bytes] : files) {
    copy(name, bytes);
    copy(std::string(name) + layout::kCrcSuffix, layout::crc_bytes(bytes));
  }
}

}  // namespace penstock::writer
