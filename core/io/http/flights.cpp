#include "core/io/http/flights.h"

#include "core/base/fork_count.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace penstock {
namespace {

// One of a list that only grows: no lock, which a fork could leave held.
struct Known {
  Known(std::string server_, std::uint64_t forks_, std::size_t most)
      : server(std::move(server_)), forks(forks_), limit(most) {}

  std::string server;
  std::uint64_t forks;  // a child has nothing of its parent's under way
  FlightLimit limit;
  Known* next = nullptr;
};

std::atomic<Known*> known_first{nullptr};

}  // namespace

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

FlightLimit& flights_to(const std::string& server, std::size_t most) {
  const std::uint64_t forks = fork_count();
  std::unique_ptr<Known> made;
  Known* first = known_first.load(std::memory_order_acquire);
  while (true) {
    for (Known* each = first; each != nullptr; each = each->next) {
      if (each->forks == forks && each->limit.most() == most && each->server == server) return each->limit;
    }
    if (!made) made = std::make_unique<Known>(server, forks, most);
    made->next = first;
    if (known_first.compare_exchange_weak(first, made.get(), std::memory_order_acq_rel)) return made.release()->limit;
  }
}

}  // namespace penstock
