// Engine: the threads that fill batches ahead of the consumer.
//
// Batches are enqueued in the order in which they will be delivered. Threads claim work of the oldest batch that has
// any (core/engine/dispatch.h) and do it (core/engine/assembly.h); rows end in any order, on any thread. The consumer
// waits for the batch that is next, and meanwhile reads rows itself where their bytes are at hand: it would only sleep,
// and be woken. All threads of penstock live here. One consumer thread calls everything, and sets Batch::cancelled
// before it cancels.
#pragma once

#include "core/base/sync.h"
#include "core/batch/batch.h"
#include "core/batch/batch_pool.h"
#include "core/engine/assembly.h"
#include "core/engine/dispatch.h"
#include "core/engine/file_changes.h"
#include "core/engine/memory_bound.h"
#include "core/engine/metrics.h"
#include "core/engine/row_reader.h"
#include "core/job/job.h"

#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace penstock {

struct EngineOptions {
  std::shared_ptr<const BatchFormats> formats;
  std::shared_ptr<const RowChoice> rows;
  StoreChoice through;  // which stores the sources' files are read through
  unsigned threads = 1;
  unsigned cores = 1;                             // that this loader may use
  std::shared_ptr<Counters> counters = nullptr;   // of the loader; null: none are kept
  std::shared_ptr<HandOver> hand_over = nullptr;  // who finishes batches; null: nobody
  bool lends = false;                             // ragged batches wait in NeedsMemory until lend() is called for them
};

class Engine {
 public:
  /// Starts the threads, which block all signals. `pool` is told what batches hold, `bound` what fetches hold. Throws
  /// IoError where a thread cannot be started.
  Engine(const EngineOptions& options, std::shared_ptr<const Job> job, const std::shared_ptr<BatchPool>& pool,
         std::shared_ptr<MemoryBound> bound);
  /// Cancels what is under way and joins.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Takes a Planned batch: plan, formats and format set; for fixed rows its slab is large enough already.
  void enqueue(std::shared_ptr<Batch> batch);
  /// The consumer took a batch.
  void batch_taken() { taken_ = true; }
  /// So many batches are planned now: wakes a thread where few of them are ready.
  void top_up(std::size_t planned);
  /// The batch's phase as soon as it is Ready, Failed or NeedsMemory, or what it is when `patience` is over.
  Batch::Phase wait(const Batch& batch, std::chrono::nanoseconds patience);
  /// Goes on with a batch in NeedsMemory, whose slab is large enough now.
  void lend(Batch& batch) { assembly_.lend(batch); }
  /// Lets memory go that nothing uses now.
  void drop_spares() { assembly_.drop_spares(); }
  /// Forgets these batches, the last ones, and cancels them; batches before them are given as they are. Where rows
  /// share fetches, those are Ready or Failed. Rows under way end in the background.
  void cancel(std::span<const std::shared_ptr<Batch>> batches);
  /// Whether rows of batches that were enqueued share fetches: those that are not Ready or Failed cannot be kept where
  /// later ones are cancelled.
  [[nodiscard]] bool shares_fetches() const noexcept { return shares_fetches_; }
  /// Forgets all batches. Rows under way end in the background.
  void cancel_all();
  /// From the next batch on they are planned by this job, another one than before after a change of the batch size or
  /// of weights. What has been given of its order is the same.
  void restart(std::shared_ptr<const Job> job) { job_ = std::move(job); }
  /// Whether no thread holds a batch any more: one that is Ready may still be in the hands of who read it.
  [[nodiscard]] bool idle() { return dispatch_.idle() && (!hand_over_ || hand_over_->idle()); }
  /// The error of a read whose file changed, the first since the last call; null: there was none.
  [[nodiscard]] std::exception_ptr take_change() noexcept { return changes_.take(); }

 private:
  struct Thread {
    Dispatch::Worker worker;
    sync::Thread thread;
  };

  void start_thread(const StoreChoice& through);
  void stop();
  void work(Dispatch::Worker& worker);
  bool help();
  void helped_row_done(const RowReader::Ended& ended);

  const std::shared_ptr<Counters> counters_;
  const std::shared_ptr<HandOver> hand_over_;
  FileChanges changes_;
  Dispatch dispatch_;
  Assembly assembly_;
  std::vector<std::unique_ptr<Thread>> threads_;

  // The consumer's own.
  std::shared_ptr<const Job> job_;
  RowReader helper_;
  bool shares_fetches_ = false;  // rows of a batch since restart() do
  bool taken_ = false;           // a batch, since the last top_up()
  bool enqueued_ = false;        // since the last top_up()
  bool missed_ = false;          // not all that it last took was at hand
  unsigned rest_ = 0;            // so often it does not try again …
  unsigned next_rest_ = 1;       // … and how often after the next miss
};

}  // namespace penstock
