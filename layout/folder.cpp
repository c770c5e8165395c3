#include "layout/folder.h"

#include "core/error.h"
#include "layout/format.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

namespace penstock::layout {
namespace {

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

void read_all(int fd, const std::string& path, std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t got = ::pread(fd, text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) raise_system(errno, fmt::format("read at {}", done), path);
    if (got == 0) raise(ErrorKind::Corruption, "{}: {} bytes, {} a moment ago", path, done, text.size());
    done += static_cast<std::size_t>(got);
  }
}

}  // namespace

FolderListing list_folder(const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), &::closedir);
  if (!folder) raise_system(errno, "open the dataset's folder", path);
  FolderListing listing;
  errno = 0;
  for (const dirent* entry = ::readdir(folder.get()); entry != nullptr; entry = ::readdir(folder.get())) {
    const std::string name = entry->d_name;
    if (name == kManifestName) listing.has_manifest = true;
    if (name.starts_with(kPartialPrefix)) listing.leftovers.push_back(name);
    if (const std::int64_t number = shard_number(name); number >= 0) {
      listing.shards.push_back(static_cast<std::uint64_t>(number));
    }
    errno = 0;
  }
  if (errno != 0) raise_system(errno, "list the dataset's folder", path);
  std::sort(listing.shards.begin(), listing.shards.end());
  std::sort(listing.leftovers.begin(), listing.leftovers.end());
  return listing;
}

std::string describe_unfinished(const std::string& path, const FolderListing& listing) {
  if (listing.shards.empty() && listing.leftovers.empty()) {
    return fmt::format("{}: no {}: not a dataset of penstock", path, kManifestName);
  }
  return fmt::format(
      "{}: an unfinished dataset: no {}, {} finished shard{}, {} unfinished; go on with the writer (`penstock write … "
      "--resume`), publish what is there with penstock.commit(path), or write it anew with overwrite=True",
      path, kManifestName, with_commas(listing.shards.size()), listing.shards.size() == 1 ? "" : "s",
      with_commas(listing.leftovers.size()));
}

std::string read_small_file(const std::string& path, std::uint64_t max_bytes) {
  // O_NONBLOCK: opening a FIFO must not wait for its writer.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)};
  if (file.fd < 0 && errno == ELOOP) raise(ErrorKind::Corruption, "{}: a symbolic link, expected a file", path);
  if (file.fd < 0) raise_system(errno, "open", path);
  struct stat status {};
  if (::fstat(file.fd, &status) != 0) raise_system(errno, "fstat", path);
  if (!S_ISREG(status.st_mode)) raise(ErrorKind::Corruption, "{}: not a regular file", path);
  const auto bytes = static_cast<std::uint64_t>(status.st_size);
  if (bytes > max_bytes) {
    raise(ErrorKind::Corruption, "{}: {} bytes, at most {} can be", path, with_commas(bytes), with_commas(max_bytes));
  }
  std::string text(bytes, '\0');
  read_all(file.fd, path, text);
  return text;
}

Manifest read_manifest(const std::string& path) {
  const std::string file = path + "/" + kManifestName;
  std::string text;
  try {
    text = read_small_file(file, kMaxManifestBytes);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::NotFound) throw;
    // list_folder says so if the folder itself is not there.
    throw Error(ErrorKind::NotFound, describe_unfinished(path, list_folder(path)), ENOENT, path);
  }
  return parse_manifest(text, file);
}

std::pair<Format, ShardInfo> read_shard_manifest(const std::string& path, std::uint64_t number) {
  const std::string file = path + "/" + shard_name(number) + "/" + kShardManifestName;
  auto [format, shard] = parse_shard_manifest(read_small_file(file, kMaxManifestBytes), file);
  shard.name = shard_name(number);
  return {std::move(format), std::move(shard)};
}

}  // namespace penstock::layout
