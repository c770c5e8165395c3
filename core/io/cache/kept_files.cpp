#include "core/io/cache/kept_files.h"

#include <functional>
#include <mutex>
#include <utility>

namespace penstock {

KeptFiles::KeptFiles(std::shared_ptr<LocalStore> local) : local_(std::move(local)) {}

KeptFiles::~KeptFiles() {
  for (const auto& [path, file] : files_) local_->forget(std::as_bytes(std::span(file.get(), 1)));
}

void KeptFiles::keep(std::vector<CacheFolder> folders, BlockShare share) {
  const std::unique_lock lock(mutex_);
  share_ = share;
  folders_ = std::move(folders);
}

CachedFile* KeptFiles::find(const File& file) {
  {
    const std::shared_lock lock(mutex_);
    if (folders_.empty()) return nullptr;
    const auto found = known_.find(&file);
    if (found != known_.end() && found->second.file == file) return found->second.at;
  }
  const std::string path = file.path();
  const std::unique_lock lock(mutex_);
  CachedFile* const found = find_path(path, file.bytes);
  known_.insert_or_assign(&file, Known{file, found});
  return found;
}

CachedFile* KeptFiles::find_path(const std::string& path, std::uint64_t bytes) {
  const auto known = files_.find(path);
  if (known != files_.end()) return known->second->bytes == bytes ? known->second.get() : nullptr;
  for (const CacheFolder& folder : folders_) {
    if (!folder.holds(path)) continue;
    const std::string name = folder.name_of(path);
    const std::uint64_t pages = (bytes + kCachePage - 1) / kCachePage;
    auto made = std::make_unique<CachedFile>(folder.path() + "/" + name, bytes, BlockShare::phase_of(name),
                                             pages * sizeof(std::uint32_t), local_.get());
    return files_.emplace(path, std::move(made)).first->second.get();
  }
  return nullptr;
}

void KeptFiles::forget(std::span<const std::byte> files) noexcept {
  const std::unique_lock lock(mutex_);
  std::erase_if(known_, [&](const auto& each) {
    const auto* const at = reinterpret_cast<const std::byte*>(each.first);
    return !std::less<>()(at, files.data()) && std::less<>()(at, files.data() + files.size());
  });
}

}  // namespace penstock
