// PreadChannel: a channel that reads at once, in the thread that submits, by pread and preadv.
//
// wait() hands out what submit() completed and never blocks, so there is nothing for wake() to interrupt. Owned by one
// thread; holds its store's cache.
#pragma once

#include "core/byte_store.h"
#include "core/fd_cache.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace penstock {

class PreadChannel final : public Channel {
 public:
  explicit PreadChannel(std::shared_ptr<ProcessFdCache> files) : files_(std::move(files)) {}

  void submit(std::span<Read* const> reads) override;
  std::size_t wait(std::span<Read*> done, std::chrono::nanoseconds timeout) override;
  void wake() override {}

 private:
  static constexpr std::size_t kHints = 256;  // a power of two; 6 KiB a channel

  void read_run(FdCache& cache, std::span<Read* const> run);
  FdHint& hint_of(const File& file);

  std::shared_ptr<ProcessFdCache> files_;
  std::uint64_t cache_forks_ = 0;  // of the cache that the hints point into
  std::array<FdHint, kHints> hints_{};
  std::vector<Read*> completed_;
  std::size_t handed_out_ = 0;  // of completed_, from the front
};

}  // namespace penstock
