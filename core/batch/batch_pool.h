// BatchPool: recycles batches with their memory, and counts what is in use.
//
// A batch returns to its pool when the last holder lets go, on whichever thread that is; holders may outlive the pool's
// owner. In a forked child nothing is recycled or locked (another thread of the parent may have held the mutex): memory
// of batches that the child lets go stays until it exits. Any thread.
#pragma once

#include "core/base/sync.h"
#include "core/batch/batch.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace penstock {

class BatchPool : public std::enable_shared_from_this<BatchPool> {
 public:
  /// Keeps at most `max_free` unused batches.
  static std::shared_ptr<BatchPool> make(std::size_t max_free);

  /// A batch in phase Planned, its memory and rows as the last user left them.
  std::shared_ptr<Batch> take();

  /// Brings the count up to date with what `batch` holds now, or with `at_least` that it is going to hold.
  void account(Batch& batch, std::uint64_t at_least = 0);

  struct Usage {
    std::uint64_t batches = 0;  // taken and not yet returned
    std::uint64_t bytes = 0;    // that they hold
  };
  [[nodiscard]] Usage usage() const;

 private:
  explicit BatchPool(std::size_t max_free);
  void give(Batch* batch) noexcept;

  const std::size_t max_free_;
  const std::uint64_t forks_;
  mutable sync::Mutex mutex_;
  std::vector<std::unique_ptr<Batch>> free_;
  Usage usage_;
};

}  // namespace penstock
