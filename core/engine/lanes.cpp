#include "core/engine/lanes.h"

#include "core/io/naming.h"

#include <algorithm>
#include <utility>

namespace penstock {

Lanes::Lanes(StoreChoice choice, ChannelMode mode) : choice_(std::move(choice)), mode_(mode) {}

Lanes::Lane& Lanes::of(const File& file) {
  for (const auto& lane : lanes_) {
    if (lane->store == file.store()) return *lane;
  }
  ByteStore& store = choose_store(choice_, *file.store());
  auto lane = std::make_unique<Lane>();
  lane->store = file.store();
  lane->channel = naming(file.path(), [&] { return store.open_channel(mode_); });
  lane->depth = store.reads_in_flight();
  const std::lock_guard lock(mutex_);
  return *lanes_.emplace_back(std::move(lane));
}

bool Lanes::is_busy() const {
  return std::any_of(lanes_.begin(), lanes_.end(), [](const auto& lane) { return lane->requests >= lane->depth; });
}

void Lanes::wake() {
  const std::lock_guard lock(mutex_);
  for (const auto& lane : lanes_) {
    if (lane->channel) lane->channel->wake();
  }
}

}  // namespace penstock
