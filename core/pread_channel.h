// PreadChannel: a channel that reads in the thread that asks, by pread and preadv.
//
// wait() reads the next run of neighbours and hands it out, so that its rows are cast while they are in the core's
// cache; it never blocks for anything else, so there is nothing for wake() to interrupt. Owned by one thread; holds its
// store's cache.
#pragma once

#include "core/byte_store.h"
#include "core/channel_files.h"
#include "core/read_queue.h"

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

namespace penstock {

class PreadChannel final : public Channel {
 public:
  explicit PreadChannel(std::shared_ptr<ProcessFdCache> files) : files_(std::move(files)) {}

  void submit(std::span<Read* const> reads) override { queue_.push(reads); }
  std::size_t wait(std::span<Read*> done, std::chrono::nanoseconds timeout) override;
  void wake() override {}

 private:
  void read_next();

  ChannelFiles files_;
  ReadQueue queue_;
  std::size_t ended_ = 0;  // of the queue, from the front: read and not handed out
};

}  // namespace penstock
