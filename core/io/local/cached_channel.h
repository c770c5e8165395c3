// Channels that never wait: they read what the page cache holds of files that are open. (core/io/local/mapped_channel.h
// has one that hardly ever does.)
//
// Other reads end with the error not_cached(), and who asked has them read elsewhere. For the thread of the consumer,
// which must neither block on a device nor miss a signal. Each is owned by one thread.
#pragma once

#include "core/io/local/run_channel.h"

#include <memory>
#include <span>
#include <utility>

namespace penstock {

/// By preadv2.
class CachedChannel final : public RunChannel {
 public:
  explicit CachedChannel(std::shared_ptr<ProcessFdCache> files) : RunChannel(std::move(files)) {}

 private:
  void read_run(std::span<Read* const> run) override;
};

/// Of a store without a page cache, or of one that is not to be asked.
class NothingCached final : public RunChannel {
 public:
  NothingCached() : RunChannel(nullptr) {}

 private:
  void read_run(std::span<Read* const> run) override;
};

/// Ends all of them with not_cached().
void leave_all(std::span<Read* const> run);

}  // namespace penstock
