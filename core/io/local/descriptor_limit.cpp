#include "core/io/local/descriptor_limit.h"

#include <sys/resource.h>

#include <algorithm>

namespace penstock {

std::size_t open_files_share() {
  constexpr rlim_t kMost = 65536;  // every file of 16,384 shards, or of 65,536 token streams
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 16;
  return static_cast<std::size_t>(std::clamp<rlim_t>(limit.rlim_cur / 4, 1, kMost));
}

void raise_descriptor_limit() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  static_cast<void>(::setrlimit(RLIMIT_NOFILE, &limit));
}

}  // namespace penstock
