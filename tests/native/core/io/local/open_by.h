// Channels of local files, by the way of reading.
#pragma once

#include "core/io/local/local_store.h"

#include <memory>

namespace penstock {

inline std::unique_ptr<Channel> open_by(const LocalStore& store, Reader reader,
                                        ChannelMode mode = ChannelMode::MayWait) {
  return store.reading_by(reader)->open_channel(mode);
}

}  // namespace penstock
