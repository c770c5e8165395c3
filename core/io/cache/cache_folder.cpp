#include "core/io/cache/cache_folder.h"

#include "core/base/digest.h"
#include "core/base/error.h"
#include "core/base/json.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <utility>

namespace penstock {
namespace {

constexpr std::uint64_t kFormat = 1;
constexpr std::uint64_t kMostAbout = 64 << 10;
constexpr std::uint64_t kSum = sizeof(std::uint32_t);
constexpr std::uint64_t kBlockSums = kCacheBlock / kCachePage * kSum;

// The share that the folder was last filled with; all if that is not known.
std::uint64_t noted_parts(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text;
  std::getline(file, text, '\0');  // an iterator of the file's characters would throw what the disk fails
  try {
    return get_u64(parse_json_strict(text, path, kMostAbout), "parts", path);
  } catch (const Error&) {
    return BlockShare::kParts;
  }
}

void make_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return;
  const int error = errno;
  if (error == ENOSPC || error == EDQUOT) return;  // nothing is kept then
  throw Error(ErrorKind::IoError,
              fmt::format("{}: the cache's folder cannot be made: {}: give cache= a folder that may be written", path,
                          std::generic_category().message(error)),
              error, path);
}

// False where the file system cannot.
bool punch(int fd, std::uint64_t begin, std::uint64_t size) {
  return ::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(begin),
                     static_cast<off_t>(size)) == 0;
}

}  // namespace

CacheFolder::CacheFolder(const std::string& root, std::string address, std::string_view version)
    : address_(std::move(address)) {
  Digest digest;
  digest.update_u64(kFormat);
  digest.update_u64(address_.size());
  digest.update(address_);
  digest.update(version);
  path_ = root + "/" + digest.hex();
}

bool CacheFolder::holds(std::string_view path) const noexcept {
  if (!path.starts_with(address_)) return false;
  return path.size() == address_.size() || path[address_.size()] == '/' || path[address_.size()] == '.';
}

std::string CacheFolder::name_of(std::string_view path) const {
  return hex_of(digest_of(std::as_bytes(std::span(path.substr(address_.size())))));
}

void CacheFolder::create() const {
  make_folder(path_);
  if (::access(path_.c_str(), R_OK | W_OK | X_OK) == 0 || errno == ENOENT) return;
  raise_system(errno, "the cache's folder cannot be written: give cache= another folder", path_);
}

std::uint64_t CacheFolder::disk_bytes() const {
  std::uint64_t blocks = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator at(path_, error), end; !error && at != end; at.increment(error)) {
    struct stat status {};
    if (::lstat(at->path().c_str(), &status) == 0) blocks += static_cast<std::uint64_t>(status.st_blocks);
  }
  return blocks * 512;
}

void CacheFolder::settle(std::span<const CacheableFile> files, BlockShare share, std::uint64_t most_bytes) const {
  const std::uint64_t noted = noted_parts(about_path());
  const std::uint64_t held = disk_bytes();
  if (held > 0 && (noted > share.parts() || held > most_bytes)) {
    for (const CacheableFile& file : files) {
      if (holds(file.path)) prune(file, share);
    }
  }
  if (held > 0 && noted == share.parts()) return;
  std::uint64_t bytes = 0;
  for (const CacheableFile& file : files) bytes += holds(file.path) ? file.bytes : 0;
  const nlohmann::json about{
      {"penstock cache", kFormat}, {"address", address_}, {"bytes", bytes}, {"parts", share.parts()}};
  // No rename: a note that was cut short says that the share is not known.
  std::ofstream file(about_path(), std::ios::binary | std::ios::trunc);
  file << about.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) << '\n';
}

void CacheFolder::prune(const CacheableFile& file, BlockShare share) const {
  const std::string own = name_of(file.path);
  const std::string name = path_ + "/" + own;
  const int sums = ::open((name + ".crc").c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
  const int data = ::open((name + ".data").c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
  const std::uint64_t phase = BlockShare::phase_of(own);
  const std::uint64_t blocks = (file.bytes + kCacheBlock - 1) / kCacheBlock;
  bool done = true;
  for (std::uint64_t begin = 0; begin < blocks && done;) {
    std::uint64_t end = begin;
    while (end < blocks && !share.keeps(phase, end)) ++end;
    // Check values first: what is cut short here leaves pages without one.
    if (end > begin && sums >= 0) done = punch(sums, begin * kBlockSums, (end - begin) * kBlockSums);
    if (end > begin && data >= 0 && done) done = punch(data, begin * kCacheBlock, (end - begin) * kCacheBlock);
    begin = end + 1;
  }
  if (sums >= 0) ::close(sums);
  if (data >= 0) ::close(data);
  if (done) return;
  (void)::unlink((name + ".crc").c_str());
  (void)::unlink((name + ".data").c_str());
}

}  // namespace penstock
