#include "core/io/http/flights.h"

#include <algorithm>

namespace penstock {

bool FlightLimit::try_begin() noexcept {
  std::size_t now = under_way_.load(std::memory_order_relaxed);
  while (now < limit()) {
    if (under_way_.compare_exchange_weak(now, now + 1, std::memory_order_relaxed)) return true;
  }
  return false;
}

void FlightLimit::was_busy(std::size_t halvings_then) noexcept {
  // Of many refusals that one burst earned, the first alone halves: the others began before it.
  if (!halvings_.compare_exchange_strong(halvings_then, halvings_then + 1, std::memory_order_relaxed)) return;
  std::size_t now = limit();
  while (!limit_.compare_exchange_weak(now, std::max<std::size_t>(now / 2, 1), std::memory_order_relaxed)) {
  }
  good_.store(0, std::memory_order_relaxed);
}

void FlightLimit::was_good() noexcept {
  std::size_t now = limit();
  if (now >= most_) return;
  if (good_.fetch_add(1, std::memory_order_relaxed) + 1 < now) return;
  good_.store(0, std::memory_order_relaxed);
  limit_.compare_exchange_strong(now, now + 1, std::memory_order_relaxed);
}

}  // namespace penstock
