// EngineState: what a loader's engine holds inside, for checks between the steps of a schedule. Nothing here is a step.
#pragma once

#include "core/engine/loader.h"
#include "tests/native/schedules/scheduler.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace penstock::schedules {

class EngineState {
 public:
  explicit EngineState(Loader& loader);

  /// Where all threads wait, for reads or for good, while the consumer waits for a batch: what is wrong with that;
  /// empty: nothing.
  [[nodiscard]] std::string wrong_at_rest(const Scheduler& scheduler) const;
  /// Looks at the memory that is in use, while the consumer holds so many batches: what is beyond its bound; empty:
  /// nothing.
  std::string wrong_memory(std::size_t held);
  /// After loader and batches are gone: what is still counted; empty: nothing.
  [[nodiscard]] std::string left_over() const;
  /// See Prefetch::change(): with the same job, which is the present one up to `same`.
  void change(std::uint64_t same) const;
  /// The loader is gone.
  void forget() { loader_ = nullptr; }

 private:
  Loader* loader_;
  const std::shared_ptr<BatchPool> pool_;
  const std::shared_ptr<MemoryBound> bound_;
  const bool is_ragged_;
  std::uint64_t largest_ = 0;        // batch so far …
  std::uint64_t largest_spans_ = 0;  // … and of it, what is not in its slab
};

}  // namespace penstock::schedules
