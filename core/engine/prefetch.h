// Prefetch: the next batches of one rank, planned in order, given memory and handed to the engine, which reads them.
//
// Keeps as many planned as were asked for and memory allows. What is planned was not delivered: it is dropped freely.
// One thread at a time. Joins the engine's threads when it is destroyed, which a forked child must not do.
#pragma once

#include "core/base/cores.h"
#include "core/batch/batch.h"
#include "core/batch/batch_pool.h"
#include "core/engine/engine.h"
#include "core/engine/memory_bound.h"
#include "core/engine/metrics.h"
#include "core/engine/row_choice.h"
#include "core/job/job.h"

#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace penstock {

/// Rows go to ranks by what they cost.
struct BalanceOptions {
  std::vector<CostRule> rules;  // by source number
};

struct LoaderOptions {
  std::shared_ptr<const Job> job;
  Share share;
  std::optional<BalanceOptions> balance;        // which rows the share is; none: by turns
  std::shared_ptr<const BatchFormats> formats;  // by the source numbers of the job's picks
  StoreChoice through;                          // which stores the sources' files are read through
  unsigned threads = 1;
  unsigned cores = usable_cores();  // that the threads and the consumer may keep busy
  unsigned prefetch = 4;
  std::uint64_t max_bytes = 0;          // of batches, held ones included, fetches, and what sources keep
  std::shared_ptr<HandOver> hand_over;  // who finishes batches before they are given out; null: nobody
  /// Memory that the caller lends, at least `bytes` long: called on its thread, by plan() and settle(). Empty: our own,
  /// recycled. Throws std::bad_alloc, or Error, where there is none; other exceptions are not of memory, and pass
  /// through whichever batch it is for.
  std::function<void(Slab&, std::uint64_t bytes)> lend;
};

class Prefetch {
 public:
  explicit Prefetch(LoaderOptions options);

  /// Throws InvalidArgument for a job with a batch that cannot be: see check_batches.
  void check_sizes(const Job& job) const;
  /// Drops what is planned; the next batch begins at `position` of `job`: the first, with other batch sizes or weights.
  void restart(std::shared_ptr<const Job> job, std::uint64_t position);
  /// Goes on with `job`, which is the present one up to position `same`; the next batch begins at `position`. Drops
  /// what is planned but for batches that end by then and are planned alike. Batches whose rows share fetches are
  /// dropped unless they are read.
  void change(std::shared_ptr<const Job> job, std::uint64_t position, std::uint64_t same);
  /// Drops what is planned and joins the threads: for good.
  void stop();
  /// Plans batches until there are enough, or 1,024 more. Throws where the next batch cannot be: InvalidArgument, where
  /// the system has no memory for it or no memory can hold it, std::bad_alloc, and what `lend` throws. That a later one
  /// cannot be is said when it is the next.
  void plan();
  /// The oldest batch, if one is planned.
  [[nodiscard]] const Batch* front() const noexcept { return planned_.empty() ? nullptr : planned_.front().get(); }
  /// Its phase, once batches that need memory have been lent some. Throws as plan().
  Batch::Phase settle();
  /// Waits until settle() has news, or until `patience` is over.
  void wait(std::chrono::nanoseconds patience);
  /// See Engine::take_change().
  [[nodiscard]] std::exception_ptr take_change() noexcept { return engine_ ? engine_->take_change() : nullptr; }
  /// The oldest batch, which is Ready.
  std::shared_ptr<Batch> take();

  /// Where none is planned: whether memory comes back when the threads let go of what was dropped.
  [[nodiscard]] bool expects_memory() { return !engine_->idle(); }
  /// What would be right where it does not: InvalidArgument.
  [[noreturn]] void raise_out_of_memory() const;

  /// Which rows ranks get. Any thread.
  [[nodiscard]] const RowChoice& rows() const noexcept { return *rows_; }
  [[nodiscard]] BatchPool::Usage usage() const { return pool_->usage(); }
  /// Where the loader counts. Any thread.
  [[nodiscard]] Counters& counters() const noexcept { return *counters_; }
  /// Any thread.
  [[nodiscard]] Metrics metrics() const;
  [[nodiscard]] std::uint64_t limit_bytes() const noexcept { return bound_->limit(bound_->largest_batch()); }
  [[nodiscard]] const LoaderOptions& options() const noexcept { return options_; }

 private:
  std::shared_ptr<const RowChoice> make_choice() const;
  bool plan_one();
  std::shared_ptr<Batch> make_batch(BatchPlan plan);

  LoaderOptions options_;
  std::shared_ptr<const Job> job_;
  const std::uint64_t kept_bytes_;  // that sources may come to keep
  const std::shared_ptr<MemoryBound> bound_;
  const std::shared_ptr<BatchPool> pool_;
  const std::shared_ptr<Counters> counters_;
  const std::shared_ptr<const RowChoice> rows_;
  std::deque<std::shared_ptr<Batch>> planned_;  // in order
  std::uint64_t planned_to_ = 0;
  bool is_short_ = false;           // of memory for a batch that is not the next: asked for again when one is taken
  std::unique_ptr<Engine> engine_;  // made by the first plan()
};

}  // namespace penstock
