#include "core/io/http/http_shared.h"

#include <functional>

namespace penstock {

std::string HttpShared::etag_of(const File& file) const {
  const std::lock_guard lock(mutex_);
  const auto found = etags_.find(&file);
  return found == etags_.end() ? std::string() : found->second;
}

void HttpShared::keep_etag(const File& file, const std::string& etag) {
  if (etag.empty()) return;
  const std::lock_guard lock(mutex_);
  etags_.try_emplace(&file, etag);
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
