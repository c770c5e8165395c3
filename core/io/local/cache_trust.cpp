#include "core/io/local/cache_trust.h"

#include <sys/resource.h>

namespace penstock {

std::int64_t CacheTrust::waits() const noexcept {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return sign_ == Sign::Sleep ? usage.ru_nvcsw : usage.ru_majflt;
}

void CacheTrust::hit() noexcept {
  if (++hits_ == kEnough) waits_ = waits();
}

void CacheTrust::read() noexcept {
  if (++reads_ % kCheckEvery == 0) check();
}

void CacheTrust::check() noexcept {
  if (holds() && waits() != waits_) hits_ = 0;
}

}  // namespace penstock
