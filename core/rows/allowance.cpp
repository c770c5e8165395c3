#include "core/rows/allowance.h"

#include <algorithm>

namespace penstock {

std::uint64_t Allowance::grant(std::uint64_t bytes) noexcept {
  const auto above = std::upper_bound(steps_.begin(), steps_.end(), bytes);
  const std::uint64_t step = above == steps_.begin() ? 0 : *(above - 1);
  std::uint64_t undecided = kUndecided;
  return granted_.compare_exchange_strong(undecided, step, std::memory_order_acq_rel) ? step : undecided;
}

}  // namespace penstock
