// Engine: the threads that fill batches ahead of the consumer.
//
// Batches are enqueued in the order in which they will be delivered. Threads take work from the oldest batch that has
// any, row by row; rows end in any order, on any thread; the consumer waits for the batch that is next. All threads of
// penstock live here. enqueue, wait, lend and cancel_all: one consumer thread.
//
// A batch goes Planned -> Picking (one thread asks the order which observations it consists of) -> for ragged rows
// Measuring (their lengths), then NeedsMemory if the memory is lent by the consumer -> Reading -> Ready or Failed.
//
// Waking a thread costs more than all else that a batch needs, for who wakes as for who is woken. So nobody is woken
// who need not be: a thread only for work that those awake have not taken, the consumer only for its next batch.
#pragma once

#include "core/batch.h"
#include "core/batch_pool.h"
#include "core/row_runner.h"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace penstock {

class Engine {
 public:
  /// Starts `threads` threads, which block all signals. `pool` is told what batches hold. If `lends`, ragged batches
  /// wait in NeedsMemory until lend() is called for them. Sleeping threads are woken when `wake_at` batches are to be
  /// read, by announce(), or when the consumer waits.
  Engine(std::shared_ptr<const Order> order, std::shared_ptr<BatchPool> pool, Reader reader, unsigned threads,
         bool lends, std::size_t wake_at);
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
  struct Claim {
    std::shared_ptr<Batch> batch;
    bool pick = false;  // ask the order first
    RowRunner::Part part = RowRunner::Part::Whole;
    std::uint64_t first = 0;  // rows [first, last)
    std::uint64_t last = 0;
  };
  struct Worker {
    std::thread thread;
    std::unique_ptr<RowRunner> runner;
    bool waits_for_reads = false;  // in pump(), so a wake() is needed
  };

  void start_worker(Reader reader);
  void stop();
  void work(Worker& worker);
  static bool can_claim(const Batch& batch);  // with mutex_ held
  bool claim(Claim& claim, bool& more);       // with mutex_ held
  void claim_rows(Claim& claim);              // with mutex_ held
  bool wake_one();                            // with mutex_ held
  void run(Worker& worker, Claim& claim);
  void pick(Claim& claim);
  std::exception_ptr prepare(Batch& batch) const;
  void row_done(const std::shared_ptr<Batch>& batch, std::uint64_t row, const std::exception_ptr& error);
  void phase_done(const std::shared_ptr<Batch>& batch);
  void enter(Batch& batch, Batch::Phase phase);                                 // with mutex_ held
  void end(Batch& batch, Batch::Phase phase);                                   // with mutex_ held
  void fail(Batch& batch, std::uint64_t row, const std::exception_ptr& error);  // with mutex_ held

  const std::shared_ptr<const Order> order_;
  const std::shared_ptr<BatchPool> pool_;
  const bool lends_;
  const std::size_t wake_at_;
  std::mutex mutex_;
  std::condition_variable work_;              // there is something to claim, or stop_
  std::condition_variable ended_;             // awaited_ is Ready, Failed or NeedsMemory
  std::deque<std::shared_ptr<Batch>> queue_;  // in order; those whose rows are all claimed leave it
  const Batch* awaited_ = nullptr;            // by a consumer that sleeps on ended_
  unsigned asleep_ = 0;                       // threads that wait for work_ …
  unsigned woken_ = 0;                        // … and how many of them are on their way
  bool hurry_ = false;                        // the consumer had to wait: all threads are wanted
  bool unannounced_ = false;                  // the consumer's: its last enqueue() woke nobody
  bool stop_ = false;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace penstock
