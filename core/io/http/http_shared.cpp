#include "core/io/http/http_shared.h"

#include <functional>

namespace penstock {

std::string HttpShared::etag_of(const File& file) {
  const std::lock_guard lock(mutex_);
  const auto found = etags_.find(&file);
  if (found != etags_.end() && found->second.file == file) return found->second.etag;
  if (opened_etags_.empty()) return {};
  const auto opened = opened_etags_.find(file.path());
  if (opened == opened_etags_.end()) return {};
  etags_.insert_or_assign(&file, Seen{file, opened->second});
  return opened->second;
}

std::string HttpShared::keep_etag(const File& file, const std::string& etag) {
  if (etag.empty()) return {};
  const std::lock_guard lock(mutex_);
  Seen& seen = etags_[&file];
  if (!(seen.file == file)) seen = {file, etag};
  return seen.etag;
}

void HttpShared::keep_etag(const std::string& path, const std::string& etag) {
  if (etag.empty()) return;
  const std::lock_guard lock(mutex_);
  opened_etags_.try_emplace(path, etag);
}

std::string HttpShared::etag_of(const std::string& path) {
  const std::lock_guard lock(mutex_);
  const auto found = opened_etags_.find(path);
  return found == opened_etags_.end() ? std::string() : found->second;
}

void HttpShared::forget(std::span<const std::byte> files) noexcept {
  const auto is_there = [&](const auto& each) {
    const auto* const at = reinterpret_cast<const std::byte*>(each.first);
    return !std::less<>()(at, files.data()) && std::less<>()(at, files.data() + files.size());
  };
  const std::lock_guard lock(mutex_);
  std::erase_if(etags_, is_there);
}

}  // namespace penstock
