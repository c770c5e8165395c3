#include "layout/folder.h"

#include "core/base/error.h"
#include "layout/format.h"
#include "layout/huge_pages.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <utility>

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

// Corpora are often kept as corpus/train, corpus/val: the folder above is opened by mistake.
std::string hint_of_datasets_in(const std::string& path) {
  constexpr std::size_t kMaxNames = 4;
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    if (std::filesystem::exists(at->path() / kManifestName, ignored)) names.push_back(at->path().filename().string());
  }
  if (names.empty()) return "";
  std::sort(names.begin(), names.end());
  std::string hint;
  for (std::size_t i = 0; i < std::min(names.size(), kMaxNames); ++i) {
    hint += (i == 0 ? ": did you mean " : ", ") + (std::filesystem::path(path) / names[i]).string();
  }
  return hint + (names.size() > kMaxNames ? fmt::format(" or one of {} more?", names.size() - kMaxNames) : "?");
}

}  // namespace

FolderListing list_folder(const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), &::closedir);
  if (!folder && errno == ENOENT) throw Error(ErrorKind::NotFound, path + ": no such folder", ENOENT, path);
  if (!folder) raise_system(errno, "open the dataset's folder", path);
  FolderListing listing;
  errno = 0;
  for (const dirent* entry = ::readdir(folder.get()); entry != nullptr; entry = ::readdir(folder.get())) {
    const std::string name = entry->d_name;
    if (name == kManifestName) listing.has_manifest = true;
    if (name.starts_with(kPartialPrefix)) listing.leftovers.push_back(name);
    if (const std::optional<ShardId> shard = parse_shard_name(name)) listing.shards.push_back(*shard);
    errno = 0;
  }
  if (errno != 0) raise_system(errno, "list the dataset's folder", path);
  std::sort(listing.shards.begin(), listing.shards.end());
  std::sort(listing.leftovers.begin(), listing.leftovers.end());
  return listing;
}

std::vector<std::uint64_t> FolderListing::numbers(std::uint64_t generation) const {
  std::vector<std::uint64_t> found;
  for (const ShardId& shard : shards) {
    if (shard.generation == generation) found.push_back(shard.number);
  }
  return found;
}

std::uint64_t unpublished_generation(const std::string& path, const FolderListing& listing) {
  std::uint64_t latest = 0;
  const auto see_folders = [&] {
    for (const ShardId& shard : listing.shards) latest = std::max(latest, shard.generation);
  };
  if (!listing.has_manifest) {
    see_folders();
    return latest;
  }
  try {
    for (const ShardInfo& shard : read_manifest(path).shards) {
      if (const std::optional<ShardId> id = parse_shard_name(shard.name)) latest = std::max(latest, id->generation);
    }
  } catch (const Error&) {  // nobody can tell what a damaged manifest named: nothing that is there is touched
    see_folders();
  }
  return latest + 1;
}

std::string describe_unfinished(const std::string& path, const FolderListing& listing) {
  if (listing.shards.empty() && listing.leftovers.empty()) {
    return fmt::format("{}: no {}: not a dataset of penstock{}", path, kManifestName, hint_of_datasets_in(path));
  }
  return fmt::format(
      "{}: an unfinished dataset: no {}, {} finished shard{}, {} unfinished: go on where it was begun (`penstock write "
      "… --resume`; in Python Writer(shard=…), then commit), or write it anew with overwrite",
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
  std::string text;
  text.reserve(bytes + kManifestTextPadding);
  advise_huge_pages(text.data(), text.capacity());
  text.resize(bytes);
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
  return parse_manifest(std::move(text), file);
}

std::pair<Format, ShardInfo> read_shard_manifest(const std::string& path, const std::string& name) {
  const std::string file = path + "/" + name + "/" + kShardManifestName;
  auto [format, shard] = parse_shard_manifest(read_small_file(file, kMaxManifestBytes), file);
  shard.name = name;
  return {std::move(format), std::move(shard)};
}

}  // namespace penstock::layout
