// CachedChannel: a channel that never waits: it reads what the page cache holds of files that are open.
//
// Other reads end with the error not_cached(), and who asked has them read elsewhere. For the thread of the consumer,
// which must neither block on a device nor miss a signal. Owned by one thread; holds its store's cache of descriptors.
#pragma once

#include "core/byte_store.h"
#include "core/channel_files.h"
#include "core/read_queue.h"

#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <utility>

namespace penstock {

/// The error of such a read; the same object always, so it can be told by comparing.
const std::exception_ptr& not_cached();

class CachedChannel final : public Channel {
 public:
  /// Of no store: nothing is cached.
  CachedChannel() = default;
  explicit CachedChannel(std::shared_ptr<ProcessFdCache> files) : files_(std::in_place, std::move(files)) {}

  void submit(std::span<Read* const> reads) override { queue_.push(reads); }
  std::size_t wait(std::span<Read*> done, std::chrono::nanoseconds timeout) override;
  void wake() override {}

 private:
  bool read_cached(std::span<Read* const> run);

  std::optional<ChannelFiles> files_;
  ReadQueue queue_;
  std::size_t ended_ = 0;  // of the queue, from the front: not handed out
};

}  // namespace penstock
