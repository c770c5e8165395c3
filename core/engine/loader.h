// Loader: batches of one rank in the job's order, prefetched; and the position that a checkpoint keeps.
//
// Joins the job (which observations), the sources (which bytes) and the engine (threads that read ahead). The position
// tells what was delivered: batches that are ready but were not asked for are dropped freely by anything that moves it.
// One thread at a time.
#pragma once

#include "core/base/cores.h"
#include "core/batch/batch.h"
#include "core/batch/batch_pool.h"
#include "core/engine/engine.h"
#include "core/engine/memory_bound.h"
#include "core/job/job.h"

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace penstock {

struct LoaderOptions {
  std::shared_ptr<const Job> job;
  Share share;
  std::shared_ptr<const BatchFormats> formats;  // by the source numbers of the job's picks
  StoreChoice through;                          // which stores the sources' files are read through
  unsigned threads = 1;
  unsigned cores = usable_cores();  // that the threads and the consumer may keep busy
  unsigned prefetch = 4;
  std::uint64_t max_bytes = 0;  // of batches, held ones included, fetches, and what sources keep
  /// Memory that the caller lends, at least `bytes` long: called by poll() on its thread. Empty: our own, recycled.
  std::function<void(Slab&, std::uint64_t bytes)> lend;
};

class Loader {
 public:
  /// Throws InvalidArgument (see Cursor).
  explicit Loader(LoaderOptions options);
  /// Joins the threads; in a forked child, which has none of them, does nothing.
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// Plans ahead and, if the next batch is ready, returns it and moves the position. Never waits. Returns null while it
  /// is being read (then wait()) and at the end (then ended() is true). Throws the error of a background read, once; a
  /// later call reads that batch again. Throws InvalidArgument if the caller holds so many batches that no memory is
  /// left for the next, after close(), and in a forked child.
  std::shared_ptr<Batch> poll();
  /// Waits until poll() can go on, or until `patience` is over.
  void wait(std::chrono::nanoseconds patience);

  /// A `for` begins: fixes where it ends (the epoch's end if per_epoch, else the run's).
  void begin();
  /// Whether poll() returned null because this `for` is over.
  [[nodiscard]] bool ended() const noexcept { return ended_; }

  [[nodiscard]] State state() const { return job_->state(position_); }
  /// Takes the saved position; see Job::load.
  Resume load(const State& state, OnMismatch on_mismatch);
  void seek(std::uint64_t position);
  /// Global batches from the next undelivered one on have `size` observations.
  void set_global_batch_size(std::uint64_t size);
  /// Stops the threads; poll() throws from now on.
  void close();

  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }
  [[nodiscard]] const Job& job() const noexcept { return *job_; }
  [[nodiscard]] BatchPool::Usage usage() const { return pool_->usage(); }
  [[nodiscard]] std::uint64_t limit_bytes() const noexcept;
  [[nodiscard]] unsigned threads() const noexcept { return options_.threads; }

 private:
  [[nodiscard]] bool is_forked() const noexcept;
  void check_process() const;
  void plan_ahead();
  bool plan_one();
  bool has_memory_for(std::uint64_t bytes) const;
  std::shared_ptr<Batch> make_batch(BatchPlan plan);
  std::shared_ptr<Batch> deliver();
  [[noreturn]] void raise_out_of_memory() const;
  void drop_planned();
  void move_to(std::uint64_t position);

  LoaderOptions options_;
  std::shared_ptr<const Job> job_;  // another one after set_global_batch_size()
  std::shared_ptr<BatchPool> pool_;
  std::unique_ptr<Engine> engine_;              // none after close(); made by the first poll()
  std::deque<std::shared_ptr<Batch>> planned_;  // in order, not yet delivered
  std::exception_ptr late_error_;               // no memory for a batch to come; the next poll() throws it
  std::uint64_t position_ = 0;                  // of the next batch to deliver
  std::uint64_t planned_to_ = 0;                // of the next batch to plan
  std::uint64_t for_end_ = 0;                   // where the present `for` ends
  bool ended_ = false;
  bool closed_ = false;
  const std::uint64_t kept_bytes_;  // that sources may come to keep
  const std::shared_ptr<MemoryBound> bound_;
  const pid_t owner_;
  const std::uint64_t forks_;
};

}  // namespace penstock
