#include "core/io/local/channel_files.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace penstock {
namespace {
// Other threads hold theirs for as long as a few reads take.
constexpr unsigned kMostAttempts = 100;
constexpr auto kBetween = std::chrono::milliseconds(1);
}  // namespace

const FdPin& ChannelFiles::hold(const File& file, bool patient) {
  if (++uses_ % kLetGoEvery == 0) let_go();
  if (const FdPin* held = find_held(file)) return *held;
  if (is_short()) let_go();  // one at a time
  for (unsigned attempt = 0;; ++attempt) {
    try {
      return hold(file, pin(file));
    } catch (const Error& error) {
      if (!lacks_room(error) || attempt == (patient ? kMostAttempts : 1)) throw;
    }
    let_go();  // what is held here may be what is lacking
    if (attempt > 0) std::this_thread::sleep_for(kBetween);
  }
}

const FdPin& ChannelFiles::hold(const File& file, FdPin pin) {
  const bool beyond =
      std::any_of(held_.begin(), held_.end(), [](const Held& held) { return held.pin && !held.pin->cached(); });
  if (beyond || !pin.cached()) let_go();  // beyond the cache's bound, one at a time
  Held& held = held_[next_held_++ % kMostHeld];
  held.file = &file;
  held.pin.reset();
  held.pin.emplace(std::move(pin));
  return *held.pin;
}

}  // namespace penstock
