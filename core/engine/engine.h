// Engine: the threads that fill batches ahead of the consumer.
//
// Batches are enqueued in the order in which they will be delivered. Threads take rows of the oldest batch that has any
// (WorkQueue); rows end in any order, on any thread; the consumer waits for the batch that is next, and meanwhile takes
// rows itself where the page cache has them: it would only sleep, and be woken. All threads of penstock live here.
// enqueue, wait, lend and cancel_all: one consumer thread.
//
// A batch goes Planned -> Picking (one thread asks the order which observations it consists of) -> for ragged rows
// Measuring (their lengths), then NeedsMemory if the memory is lent by the consumer -> Reading -> Ready or Failed.
#pragma once

#include "core/batch/batch.h"
#include "core/batch/batch_pool.h"
#include "core/engine/crew.h"
#include "core/engine/row_runner.h"
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

class Engine {
 public:
  /// Starts `threads` threads, which block all signals and read through the stores that `through` chooses.
  Engine(std::shared_ptr<const Job> job, std::shared_ptr<BatchPool> pool, const StoreChoice& through, unsigned threads,
         bool lends, std::size_t most_unread);
  /// Cancels what is under way and joins.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Takes a Planned batch: plan, formats and format set; for fixed rows its slab is large enough already.
  void enqueue(std::shared_ptr<Batch> batch);
  /// Wakes threads for what is enqueued: no further batch is to be expected soon.
  void announce();
  /// The batch's phase as soon as it is Ready, Failed or NeedsMemory, or what it is when `patience` is over.
  Batch::Phase wait(const Batch& batch, std::chrono::nanoseconds patience);
  /// Goes on with a batch in NeedsMemory, whose slab is large enough now.
  void lend(Batch& batch);
  /// Forgets all batches. Rows under way end in the background.
  void cancel_all();
  /// Whether no thread holds a batch any more: one that is Ready may still be in the hands of who read it.
  [[nodiscard]] bool idle();

 private:
  struct Worker {
    std::thread thread;
    std::unique_ptr<RowRunner> runner;
    bool waits_for_reads = false;  // in pump(), so a wake() is needed
  };

  void start_worker(const StoreChoice& through);
  void stop();
  void work(Worker& worker);
  bool next_claim(Worker& worker, Claim& claim);
  bool call_one();  // with mutex_ held; true: crew_.notify() when it is let go
  [[nodiscard]] std::size_t call_at() const noexcept;
  [[nodiscard]] bool any_waits_for_reads() const;  // with mutex_ held
  bool help();
  void run(RowRunner& runner, Claim& claim);
  void pick(Claim& claim);
  std::exception_ptr prepare(Batch& batch) const;
  void row_done(const std::shared_ptr<Batch>& batch, std::uint64_t row, const std::exception_ptr& error);
  void helped_row_done(const std::shared_ptr<Batch>& batch, std::uint64_t row, Outcome outcome,
                       const std::exception_ptr& error);
  void phase_done(const std::shared_ptr<Batch>& batch);

  const std::shared_ptr<const Job> job_;
  const std::shared_ptr<BatchPool> pool_;
  const bool lends_;
  const std::size_t most_unread_;
  std::mutex mutex_;
  WorkQueue queue_;                 // by mutex_, as the phases of its batches
  Crew crew_;                       // by mutex_
  std::condition_variable ended_;   // awaited_ is Ready, Failed or NeedsMemory
  const Batch* awaited_ = nullptr;  // by a consumer that sleeps on ended_
  bool hurry_ = false;              // the consumer had to wait: all threads are wanted
  std::size_t ready_ = 0;           // batches since the consumer last had to wait
  std::vector<std::unique_ptr<Worker>> workers_;

  // The consumer's own.
  RowRunner helper_;
  bool missed_ = false;       // what it last took was not all in the page cache
  unsigned rest_ = 0;         // so often it does not try again …
  unsigned next_rest_ = 1;    // … and how often after the next miss
  bool unannounced_ = false;  // its last enqueue() called nobody
};

}  // namespace penstock
