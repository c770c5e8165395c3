// MappedChannel: a channel that copies out of mapped files, which needs no system call a read.
//
// Pages that the page cache lacks are asked for when their reads are new, all at once, and waited for in their turn.
// Non-blocking, it leaves reads of such pages and maps no file; after 256 reads in a row whose pages were in memory it
// stops asking, and may wait for the pages of one submit() before it notices. An error of the device, or a page that
// lies beyond the end of a file cut short since it was mapped, is a signal (SIGBUS) that ends the process; what is left
// of the last page reads as zeros. Owned by one thread.
#pragma once

#include "core/io/local/run_channel.h"

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

namespace penstock {

class MappedChannel final : public RunChannel {
 public:
  MappedChannel(std::shared_ptr<ProcessFdCache> files, ChannelMode mode) : RunChannel(std::move(files)), mode_(mode) {}

 private:
  void prepare(std::span<Read* const> reads) override;
  void read_run(std::span<Read* const> run) override;
  void ask_for(std::span<Read* const> run);
  bool may_copy(const OpenFile& file, std::span<Read* const> run);

  /// Whether pages are taken to be in memory without asking.
  [[nodiscard]] bool assumes() const noexcept { return hits_ >= kEnoughHits; }
  void asked(bool hit) noexcept;
  void check_faults() noexcept;

  static constexpr std::uint64_t kEnoughHits = 256;  // in a row
  static constexpr std::uint64_t kCheckEvery = 16;   // reads

  const ChannelMode mode_;
  std::uint64_t hits_ = 0;
  std::uint64_t unasked_ = 0;  // reads
  std::int64_t faults_ = 0;    // major faults of this thread when hits_ reached kEnoughHits
};

}  // namespace penstock
