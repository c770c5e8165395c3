#include "core/io/file_ends.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace penstock {

FileEnds::Ends::Ends(std::uint64_t bytes_of_file)
    : bytes(bytes_of_file), head(std::min(bytes, kBytes), '\0'), tail(std::min(bytes - head.size(), kBytes), '\0') {}

void FileEnds::keep(const std::string& path, Ends ends) {
  const std::lock_guard lock(mutex_);
  ends_.insert_or_assign(path, std::move(ends));
}

std::optional<std::uint64_t> FileEnds::bytes_of(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  const auto at = ends_.find(path);
  return at == ends_.end() ? std::nullopt : std::optional(at->second.bytes);
}

bool FileEnds::read(const std::string& path, std::uint64_t offset, std::span<std::byte> out) const {
  const std::lock_guard lock(mutex_);
  const auto at = ends_.find(path);
  if (at == ends_.end()) return false;
  const Ends& ends = at->second;
  if (offset > ends.bytes || out.size() > ends.bytes - offset) return false;
  const std::uint64_t in_head = offset < ends.head.size() ? std::min(out.size(), ends.head.size() - offset) : 0;
  if (in_head < out.size() && offset + in_head < ends.tail_begin()) return false;
  std::memcpy(out.data(), ends.head.data() + (in_head > 0 ? offset : 0), in_head);
  out = out.subspan(in_head);
  if (!out.empty()) std::memcpy(out.data(), ends.tail.data() + (offset + in_head - ends.tail_begin()), out.size());
  return true;
}

void FileEnds::drop() noexcept {
  const std::lock_guard lock(mutex_);
  ends_.clear();
}

}  // namespace penstock
