#include "core/base/fork_count.h"

#include <pthread.h>

#include <atomic>

namespace penstock {
namespace {

std::atomic<std::uint64_t> count{0};

void count_fork() {
  count.fetch_add(1, std::memory_order_relaxed);
}

// Registered when the library is loaded, so no lock of ours can be held across it.
[[maybe_unused]] const int kForkHandler = pthread_atfork(nullptr, nullptr, &count_fork);

}  // namespace

std::uint64_t fork_count() noexcept {
  return count.load(std::memory_order_relaxed);
}

}  // namespace penstock
