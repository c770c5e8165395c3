// Engine: the threads that fill batches ahead of the consumer.
//
// Batches are enqueued in the order in which they will be delivered. Threads take rows of the oldest batch that has any
// (WorkQueue); rows end in any order, on any thread. The consumer waits for the batch that is next, and meanwhile reads
// rows itself where their bytes are at hand: it would only sleep, and be woken. All threads of penstock live here.
// enqueue, batch_taken, top_up, wait, lend, restart and cancel_all: one consumer thread, which sets Batch::cancelled
// before it cancels.
//
// A batch goes Planned -> Picking (one thread asks the job which observations it consists of) -> if its rows share
// fetches (core/engine/fetch.h) Fetching, until those are read -> for ragged rows Measuring (their lengths), then
// NeedsMemory if the memory is lent by the consumer -> Reading -> Ready or Failed.
#pragma once

#include "core/batch/batch.h"
#include "core/batch/batch_pool.h"
#include "core/engine/fetch.h"
#include "core/engine/memory_bound.h"
#include "core/engine/row_reader.h"
#include "core/engine/sleepers.h"
#include "core/engine/wakeups.h"
#include "core/engine/work_queue.h"
#include "core/job/job.h"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace penstock {

struct EngineOptions {
  std::shared_ptr<const BatchFormats> formats;
  Share share;
  StoreChoice through;  // which stores the sources' files are read through
  unsigned threads = 1;
  unsigned cores = 1;  // that this loader may use
  bool lends = false;  // ragged batches wait in NeedsMemory until lend() is called for them
};

class Engine {
 public:
  /// Starts the threads, which block all signals. `pool` is told what batches hold, `bound` what fetches hold. Throws
  /// IoError where a thread cannot be started.
  Engine(EngineOptions options, std::shared_ptr<const Job> job, std::shared_ptr<BatchPool> pool,
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
  void lend(Batch& batch);
  /// Forgets all batches. Rows under way end in the background.
  void cancel_all();
  /// From the next batch on they are planned by this job, another one than before after a change of the batch size. It
  /// has the same order.
  void restart(std::shared_ptr<const Job> job);
  /// Whether no thread holds a batch any more: one that is Ready may still be in the hands of who read it.
  [[nodiscard]] bool idle();

 private:
  struct Worker {
    std::thread thread;
    std::unique_ptr<RowReader> reader;
    bool waits_for_reads = false;     // in pump(), and could take more: a wake() is needed
    std::uint64_t rows_ended = 0;     // since it last told Wakeups …
    std::uint64_t batch_rows = 0;     // … of batches with so many …
    std::chrono::nanoseconds busy{};  // … for which it was awake so long
  };

  void start_worker();
  void stop();
  void work(Worker& worker);
  bool next_claim(Worker& worker, Claim& claim, Wakeups::Time& now);
  bool wake_one(Wakeups::Time now);  // with mutex_ held; true: sleepers_.notify() when it is let go
  bool help();
  void run(RowReader& reader, Claim& claim);
  void run_part(RowReader& reader, const Claim& claim);
  void part_ended(const std::shared_ptr<Stretch>& stretch);
  void pick(Claim& claim);
  std::exception_ptr prepare(Batch& batch);
  void fetched(const std::shared_ptr<Batch>& batch);
  void adopt(const std::shared_ptr<Batch>& batch, std::uint64_t row);
  void row_done(const std::shared_ptr<Batch>& batch, std::uint64_t row, const std::exception_ptr& error);
  void helped_row_done(const RowReader::Ended& ended);
  void phase_done(const std::shared_ptr<Batch>& batch);
  [[nodiscard]] std::uint64_t rows_a_claim(Wakeups::Time now) const;  // with mutex_ held

  const EngineOptions options_;
  const std::shared_ptr<const Job> first_job_;  // the threads': restart() changes plans, never what stands where
  const std::shared_ptr<BatchPool> pool_;
  const std::shared_ptr<MemoryBound> bound_;
  std::mutex planner_mutex_;  // taken before mutex_, never after
  FetchPlanner planner_;      // by planner_mutex_
  std::mutex mutex_;
  WorkQueue queue_;                 // by mutex_, as the phases of its batches
  Wakeups wakeups_;                 // by mutex_
  Sleepers sleepers_;               // by mutex_
  std::condition_variable ended_;   // awaited_ is Ready, Failed or NeedsMemory
  const Batch* awaited_ = nullptr;  // by a consumer that sleeps on ended_
  std::vector<std::unique_ptr<Worker>> workers_;

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
