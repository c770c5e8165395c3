#include "core/io/cache/cached_store.h"

#include "core/base/digest.h"
#include "core/base/error.h"
#include "core/base/fork_count.h"
#include "core/io/cache/cached_channel.h"
#include "core/io/cache/page_writer.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <mutex>
#include <utility>

namespace penstock {
namespace {

std::uint64_t free_bytes(const std::string& path) {
  struct statvfs status {};
  if (::statvfs(path.c_str(), &status) != 0) raise_system(errno, "its free space is not told", path);
  return static_cast<std::uint64_t>(status.f_bavail) * status.f_frsize;
}

// A cache around another store than that which its dataset was opened through.
class FilledThrough final : public ByteStore {
 public:
  FilledThrough(CachedStore& cache, std::shared_ptr<ByteStore> behind) : cache_(cache), behind_(std::move(behind)) {}

  std::unique_ptr<Channel> open_channel(ChannelMode mode) override { return cache_.open_channel_to(*behind_, mode); }
  std::uint64_t size(const std::string& path, Links links) override { return behind_->size(path, links); }
  void read_small(const std::string& path, std::uint64_t offset, std::span<std::byte> out) override {
    behind_->read_small(path, offset, out);
  }
  std::vector<std::string> list(const std::string& path) override { return behind_->list(path); }
  void forget(std::span<const std::byte> files) noexcept override {
    behind_->forget(files);
    cache_.forget(files);
  }
  [[nodiscard]] std::size_t reads_in_flight() override { return behind_->reads_in_flight(); }
  [[nodiscard]] std::uint64_t near_bytes() const override { return behind_->near_bytes(); }
  [[nodiscard]] std::uint64_t most_unwanted() const override { return behind_->most_unwanted(); }
  [[nodiscard]] std::uint64_t most_bytes() const override { return behind_->most_bytes(); }
  [[nodiscard]] bool is_far() const override { return behind_->is_far(); }
  [[nodiscard]] std::uint64_t block_bytes() const override { return behind_->block_bytes(); }
  [[nodiscard]] std::string name() override { return behind_->name(); }

 private:
  CachedStore& cache_;
  const std::shared_ptr<ByteStore> behind_;
};

}  // namespace

CachedStore::CachedStore(std::shared_ptr<ByteStore> store, const std::shared_ptr<LocalStore>& local, std::string root)
    : store_(std::move(store)), root_(std::move(root)), forks_(fork_count()), kept_(local->of_changing_files()) {
  std::error_code error;
  std::filesystem::create_directories(root_, error);
  int refusal = error.value();
  if (refusal == 0 && ::access(root_.c_str(), R_OK | W_OK | X_OK) != 0) refusal = errno;
  if (refusal == 0 && !std::filesystem::is_directory(root_, error)) refusal = error ? error.value() : ENOTDIR;
  if (refusal == 0) return;
  // Not raise_system(), which would have a folder that cannot be made be a dataset that is not there.
  throw Error(ErrorKind::IoError,
              fmt::format("{}: the cache's folder cannot be written: {}: give cache= a folder that can", root_,
                          std::generic_category().message(refusal)),
              refusal, root_);
}

void CachedStore::keep(std::span<const Content> contents, std::span<const CacheableFile> files,
                       std::optional<std::uint64_t> most_bytes) {
  std::vector<CacheFolder> folders;
  std::uint64_t held = 0;
  for (const Content& each : contents) {
    held += folders.emplace_back(root_, each.address, each.version).disk_bytes();
  }
  // The longest address first: one may lie in another.
  std::sort(folders.begin(), folders.end(),
            [](const auto& a, const auto& b) { return a.address().size() > b.address().size(); });
  std::vector<BlockShare::File> shares;
  shares.reserve(files.size());
  for (const CacheableFile& file : files) {
    const auto folder =
        std::find_if(folders.begin(), folders.end(), [&](const auto& each) { return each.holds(file.path); });
    if (folder != folders.end()) shares.push_back({BlockShare::phase_of(folder->name_of(file.path)), file.bytes});
  }
  const std::uint64_t most = most_bytes ? *most_bytes : (free_bytes(root_) + held) / 2;
  const BlockShare share = BlockShare::within(shares, most);
  for (const CacheFolder& folder : folders) {
    folder.create();
    folder.settle(files, share, most);
  }
  kept_.keep(std::move(folders), share);
}

std::string CachedStore::digest_of_whole(const std::string& path) const {
  const std::shared_lock lock(mutex_);
  const auto found = digests_.find(path);
  return found == digests_.end() ? std::string() : found->second;
}

bool CachedStore::read_whole(const std::string& path, std::uint64_t most, std::string& text) {
  if (!store_->read_whole(path, most, text)) {
    const std::uint64_t bytes = store_->size(path, Links::Follow);
    if (bytes > most) return false;  // the caller asks for the size again, and says what it thinks of it
    text.resize(bytes);
    store_->read_small(path, 0, std::as_writable_bytes(std::span(text)));
  }
  std::string digest = hex_of(penstock::digest_of(std::as_bytes(std::span(text))));
  const std::unique_lock lock(mutex_);
  digests_.insert_or_assign(path, std::move(digest));
  return true;
}

std::shared_ptr<ByteStore> CachedStore::filled_through(std::shared_ptr<ByteStore> behind) {
  return std::make_shared<FilledThrough>(*this, std::move(behind));
}

std::unique_ptr<Channel> CachedStore::open_channel_to(ByteStore& behind, ChannelMode mode) {
  if (forks_ != fork_count()) {
    raise(ErrorKind::InvalidArgument,
          "a dataset that is read through a cache was opened before this process was forked: open it here, or start "
          "processes by spawn");
  }
  return std::make_unique<CachedChannel>(kept_, *store_, behind, mode);
}

bool CachedStore::doubt(const File& file, std::uint64_t offset, std::uint64_t size) noexcept {
  if (forks_ != fork_count()) return false;
  try {
    const CachedFile* const kept = kept_.find(file);
    return kept != nullptr && drop_pages(*kept, offset, size);
  } catch (...) {  // without memory
    return false;
  }
}

void CachedStore::forget(std::span<const std::byte> files) noexcept {
  if (forks_ != fork_count()) return;  // a thread of the parent may have held the mutex
  store_->forget(files);
  kept_.forget(files);
}

}  // namespace penstock
