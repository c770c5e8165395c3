// MappedChannel: a channel that copies out of mapped files: no system call a read, and none into the page cache's tree.
//
// Pages that the page cache lacks are asked for as reads are submitted, all at once, and waited for in their turn.
// An error of the device, or a file that was cut short since it was opened, is a signal (SIGBUS) that ends the process.
// Owned by one thread.
#pragma once

#include "core/cache_trust.h"
#include "core/run_channel.h"

#include <memory>
#include <span>
#include <utility>

namespace penstock {

class MappedChannel final : public RunChannel {
 public:
  explicit MappedChannel(std::shared_ptr<ProcessFdCache> files) : RunChannel(std::move(files)) {}

  void submit(std::span<Read* const> reads) override;

 private:
  void read_run(std::span<Read* const> run) override;
  void ask_for(std::span<Read* const> run);

  CacheTrust trust_{CacheTrust::Sign::Fault};
};

/// The same for who must not wait: what is not in memory ends with not_cached(). Once all was there for a while it no
/// longer asks, since asking costs almost what copying does, and may then have to wait for a page or two.
class CachedMappedChannel final : public RunChannel {
 public:
  explicit CachedMappedChannel(std::shared_ptr<ProcessFdCache> files) : RunChannel(std::move(files)) {}

 private:
  void read_run(std::span<Read* const> run) override;
  bool may_read(const std::byte* file, std::span<Read* const> run);

  CacheTrust trust_{CacheTrust::Sign::Fault};
};

}  // namespace penstock
