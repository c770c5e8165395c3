// Dispatch: which work is done next, and who sleeps until there is some.
//
// One mutex guards the queue of work, the phases of the batches in it, the decisions of waking and the sleeping
// threads; nothing else locks it. What makes work wakes a thread for it. The consumer is one thread; any number of
// threads work.
#pragma once

#include "core/base/sync.h"
#include "core/batch/batch.h"
#include "core/engine/fetch.h"
#include "core/engine/row_reader.h"
#include "core/engine/sleepers.h"
#include "core/engine/wakeups.h"
#include "core/engine/work_queue.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <vector>

namespace penstock {

/// Ready, Failed or NeedsMemory: nothing changes until the consumer acts.
bool is_settled(Batch::Phase phase) noexcept;

class Dispatch {
 public:
  using Time = Wakeups::Time;

  /// One thread, as Dispatch sees it.
  struct Worker {
    std::unique_ptr<RowReader> reader;
    // The thread's own, which claim() takes note of:
    std::uint64_t rows_ended = 0;     // since it last claimed …
    std::chrono::nanoseconds busy{};  // … for which it was awake so long

   private:
    friend class Dispatch;
    std::uint64_t batch_rows = 0;  // of the batch that it last claimed of
    bool waits_for_reads = false;  // in pump(), and could take more: a wake() is needed …
    bool was_woken = false;        // … and came
  };

  Dispatch(unsigned threads, unsigned cores) : wakeups_(threads, cores), sleepers_(threads) {}

  // --- threads

  /// Before the thread begins. `worker` stays until all threads have ended.
  void add(Worker& worker);
  /// Something to do for this thread, which sleeps until there is, unless it has reads under way. False: nothing (more)
  /// but those. `now` is brought up to date after a sleep.
  bool claim(Worker& worker, Claim& claim, Time& now);
  /// No thread sleeps or claims any more.
  void dismiss();

  // --- the consumer

  /// A Planned batch, after all others.
  void push(std::shared_ptr<Batch> batch);
  /// `planned` batches are planned; `taken`: the consumer took one since the last call. Wakes a thread if few are
  /// ready. How many are.
  std::size_t top_up(std::size_t planned, bool taken);
  /// It begins to wait: all threads are wanted …
  void consumer_waits();
  /// … it may read rows itself …
  bool claim_for_consumer(Claim& claim);
  /// … leave one that is not at hand to a thread, which may wait …
  void give_back(const std::shared_ptr<Batch>& batch, std::uint64_t row);
  /// … and then sleeps until the batch is settled or the deadline is over, which ends the wait.
  void sleep_until_settled(const Batch& batch, Time deadline);
  /// Cancels and forgets these batches, whose rows no fetches have.
  void cancel(std::span<const std::shared_ptr<Batch>> batches);
  /// Cancels and forgets all work.
  void cancel_all();
  /// Whether no thread holds a batch any more: one that is Ready may still be in the hands of who read it.
  [[nodiscard]] bool idle();

  // --- what became of a claim; nothing here needs memory, of which a thread may have none

  enum class Picked { Rows, Nothing, Fetched, Waits };
  /// A batch in Picking is known, or failed; these stretches were planned for it. Rows: claim.first to claim.last are
  /// to be read. Nothing: no row is valid. Fetched: its fetches are read. Waits: they are not, or it failed.
  Picked picked(Claim& claim, std::vector<std::shared_ptr<Stretch>> planned, const std::exception_ptr& error) noexcept;
  /// To be read when nothing else is.
  void push(std::shared_ptr<Stretch> stretch) noexcept;
  /// A part of the stretch has been read. True: it was the last one.
  bool part_ended(Stretch& stretch) noexcept;
  /// A batch that waited for stretches that are all read now, and is Picking; null if there is none (more).
  std::shared_ptr<Batch> take_fetched() noexcept;
  /// The thread of this reader does something for which it may wait, and then wakes it: until it claims again, work is
  /// for others.
  void leave_work(const RowReader& reader) noexcept;
  /// The lengths of all rows are known without a Measuring phase; it ends as if there had been one.
  void lengths_known(Batch& batch) noexcept;
  /// The error of the lowest row is kept, so that the same one is reported whatever the threads did.
  void note_error(Batch& batch, std::uint64_t row, const std::exception_ptr& error) noexcept;
  /// The batch enters `phase`: Reading, NeedsMemory or Ready; Failed if it has an error, or this one.
  void enter(Batch& batch, Batch::Phase phase, const std::exception_ptr& error = nullptr) noexcept;

 private:
  bool wake_one(Time now);
  [[nodiscard]] std::uint64_t rows_a_claim(Time now) const;

  sync::Mutex mutex_;  // of all that follows, and of phases
  WorkQueue queue_;
  Wakeups wakeups_;
  Sleepers sleepers_;
  std::vector<Worker*> workers_;
  sync::Condition settled_;         // awaited_ is
  const Batch* awaited_ = nullptr;  // by a consumer that sleeps on settled_
};

}  // namespace penstock
