// PreadChannel: a channel that reads by pread and preadv. Non-blocking, it takes what the page cache has of open files.
#pragma once

#include "core/io/local/run_channel.h"

#include <memory>
#include <span>
#include <utility>

namespace penstock {

class PreadChannel final : public RunChannel {
 public:
  PreadChannel(std::shared_ptr<ProcessFdCache> files, ChannelMode mode) : RunChannel(std::move(files)), mode_(mode) {}

 private:
  void read_run(std::span<Read* const> run) override;
  void read_at_hand(std::span<Read* const> run);

  const ChannelMode mode_;
};

}  // namespace penstock
