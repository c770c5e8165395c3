// MappedChannel: a channel that copies out of mapped files, which needs no system call a read.
//
// Pages that the page cache lacks are asked for when their reads are new, all at once, and waited for in their turn. An
// error of the device, or a page that lies beyond the end of a file cut short since it was mapped, is a signal (SIGBUS)
// that ends the process; what is left of the last page reads as zeros. Owned by one thread.
#pragma once

#include "core/io/local/cache_trust.h"
#include "core/io/local/run_channel.h"

#include <memory>
#include <span>
#include <utility>

namespace penstock {

class MappedChannel final : public RunChannel {
 public:
  explicit MappedChannel(std::shared_ptr<ProcessFdCache> files) : RunChannel(std::move(files)) {}

 private:
  void prepare(std::span<Read* const> reads) override;
  void read_run(std::span<Read* const> run) override;
  void ask_for(std::span<Read* const> run);

  CacheTrust trust_{CacheTrust::Sign::Fault};
};

/// The same for who should not wait: what is not in memory ends with not_cached(). Asking costs almost what copying
/// does, so it no longer asks once all was there for a while; it may then have to wait for the pages of the reads that
/// it was given at once, and asks again after that.
class CachedMappedChannel final : public RunChannel {
 public:
  explicit CachedMappedChannel(std::shared_ptr<ProcessFdCache> files) : RunChannel(std::move(files)) {}

 private:
  void prepare(std::span<Read* const> reads) override;
  void read_run(std::span<Read* const> run) override;
  bool may_read(const OpenFile& file, std::span<Read* const> run);

  CacheTrust trust_{CacheTrust::Sign::Fault};
};

}  // namespace penstock
