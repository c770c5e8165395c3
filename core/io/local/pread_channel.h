// PreadChannel: a channel that reads by pread and preadv.
#pragma once

#include "core/io/local/run_channel.h"

#include <memory>
#include <span>
#include <utility>

namespace penstock {

class PreadChannel final : public RunChannel {
 public:
  explicit PreadChannel(std::shared_ptr<ProcessFdCache> files) : RunChannel(std::move(files)) {}

 private:
  void read_run(std::span<Read* const> run) override;
};

}  // namespace penstock
