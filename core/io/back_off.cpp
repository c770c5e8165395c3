#include "core/io/back_off.h"

#include "core/base/mix64.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

namespace penstock {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstPause{100};
constexpr milliseconds kMostPause{5'000};
constexpr std::uint32_t kMostDoublings = 10;  // of the first pause: more than the longest one

}  // namespace

milliseconds back_off(std::uint32_t attempts) {
  static std::atomic<std::uint64_t> count{
      static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count())};
  const std::uint32_t doublings = std::min(attempts - 1, kMostDoublings);
  const milliseconds most = std::min(kMostPause, kFirstPause * (1U << doublings));
  const std::uint64_t draw = mix64(count.fetch_add(1, std::memory_order_relaxed)) >> 32;
  return milliseconds(static_cast<std::uint64_t>(most.count()) * draw >> 32);
}

std::string given_up(std::chrono::nanoseconds deadline, std::uint32_t attempts) {
  return fmt::format("no answer that will do in {:g} s and {} attempt{}; the last",
                     std::chrono::duration<double>(deadline).count(), attempts, attempts == 1 ? "" : "s");
}

}  // namespace penstock
