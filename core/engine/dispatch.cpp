#include "core/engine/dispatch.h"

#include "core/base/sync.h"

#include <algorithm>
#include <utility>

namespace penstock {
namespace {
using sync::Clock;
}

bool is_settled(Batch::Phase phase) noexcept {
  return phase == Batch::Phase::Ready || phase == Batch::Phase::Failed || phase == Batch::Phase::NeedsMemory;
}

// --- threads

void Dispatch::add(Worker& worker) {
  const std::lock_guard lock(mutex_);
  workers_.push_back(&worker);
}

std::uint64_t Dispatch::rows_a_claim(Time now) const {
  return wakeups_.rows_a_claim(queue_.next_batch_rows(), wakeups_.most_awake(now));
}

// One more thread, if there is work and more are wanted. One that waits for reads comes first: it is awake. True:
// sleepers_.notify() after unlocking.
bool Dispatch::wake_one(Time now) {
  if (!queue_.has_work()) return false;
  for (Worker* worker : workers_) {
    if (!worker->waits_for_reads) continue;
    worker->waits_for_reads = false;
    worker->was_woken = true;
    worker->reader->wake();
    return false;
  }
  return sleepers_.wake(wakeups_.threads_wanted(now));
}

bool Dispatch::claim(Worker& worker, Claim& claim, Time& now) {
  RowReader& reader = *worker.reader;
  bool claimed = false;
  bool notify = false;
  {
    std::unique_lock lock(mutex_);
    worker.waits_for_reads = false;
    const bool was_woken = std::exchange(worker.was_woken, false);
    if (worker.rows_ended > 0) {
      wakeups_.rows_read(std::exchange(worker.rows_ended, 0), worker.batch_rows, std::exchange(worker.busy, {}));
    }
    while (!sleepers_.dismissed()) {
      const bool is_crowded = reader.is_idle() && sleepers_.awake() > wakeups_.most_awake(now);
      claimed = !reader.is_busy() && !is_crowded && queue_.claim(Claimant::Thread, rows_a_claim(now), claim);
      if (claimed || !reader.is_idle()) break;
      sleepers_.sleep(lock);
      now = Clock::now();
    }
    worker.waits_for_reads = !claimed && !reader.is_busy() && !sleepers_.dismissed();
    // What ended meanwhile may have planned so many reads that it takes nothing: then another one is to.
    notify = (claimed || was_woken) && wake_one(now);
    if (claimed && claim.batch) worker.batch_rows = claim.batch->plan.valid;
  }
  if (notify) sleepers_.notify();
  return claimed;
}

void Dispatch::dismiss() {
  const std::lock_guard lock(mutex_);
  sleepers_.dismiss();
  for (Worker* worker : workers_) worker->reader->wake();
}

// --- the consumer

void Dispatch::push(std::shared_ptr<Batch> batch) {
  const std::lock_guard lock(mutex_);
  queue_.push(std::move(batch));
}

std::size_t Dispatch::top_up(std::size_t planned, bool taken) {
  const auto now = Clock::now();
  bool notify = false;
  std::size_t ready = 0;
  {
    const std::lock_guard lock(mutex_);
    if (taken) wakeups_.batch_taken(now);
    ready = planned - std::min(planned, queue_.unfinished());
    if (ready <= wakeups_.low_water(planned)) notify = wake_one(now);
  }
  if (notify) sleepers_.notify();
  return ready;
}

void Dispatch::consumer_waits() {
  bool notify = false;
  {
    const std::lock_guard lock(mutex_);
    wakeups_.consumer_waits();
    notify = wake_one(Clock::now());
  }
  if (notify) sleepers_.notify();
}

bool Dispatch::claim_for_consumer(Claim& claim) {
  bool notify = false;
  {
    const std::lock_guard lock(mutex_);
    if (!queue_.claim(Claimant::Consumer, rows_a_claim(Clock::now()), claim)) return false;
    wakeups_.consumer_reads(true);
    notify = wake_one(Clock::now());
  }
  if (notify) sleepers_.notify();
  return true;
}

void Dispatch::give_back(const std::shared_ptr<Batch>& batch, std::uint64_t row) {
  bool notify = false;
  {
    const std::lock_guard lock(mutex_);
    queue_.give_back(batch, row);
    wakeups_.consumer_reads(false);
    notify = wake_one(Clock::now());
  }
  if (notify) sleepers_.notify();
}

void Dispatch::sleep_until_settled(const Batch& batch, Time deadline) {
  std::unique_lock lock(mutex_);
  if (!is_settled(batch.phase)) {
    wakeups_.consumer_reads(false);
    if (wake_one(Clock::now())) sleepers_.notify();  // which has its core now; the mutex is let go in a moment
    awaited_ = &batch;
    settled_.wait_until(lock, deadline, [&] { return is_settled(batch.phase); });
    awaited_ = nullptr;
  }
  wakeups_.consumer_leaves(Clock::now());
}

void Dispatch::cancel(std::span<const std::shared_ptr<Batch>> batches) {
  const std::lock_guard lock(mutex_);
  queue_.cancel(batches);
}

void Dispatch::cancel_all() {
  const std::lock_guard lock(mutex_);
  queue_.cancel_all();
}

bool Dispatch::idle() {
  const std::lock_guard lock(mutex_);
  return queue_.empty() && sleepers_.all_asleep();
}

// --- what became of a claim

Dispatch::Picked Dispatch::picked(Claim& claim, std::vector<std::shared_ptr<Stretch>> planned,
                                  const std::exception_ptr& error) noexcept {
  Batch& batch = *claim.batch;
  const auto first_phase = batch.format->shape.ragged ? Batch::Phase::Measuring : Batch::Phase::Reading;
  Picked result = Picked::Waits;
  bool notify = false;
  bool awaited = false;
  {
    const std::lock_guard lock(mutex_);
    for (auto& stretch : planned) {
      if (!stretch->parts.empty() && !batch.cancelled) queue_.push(std::move(stretch));
    }
    if (error) {
      awaited = awaited_ == &batch;
      queue_.fail(batch, 0, error);
    } else if (batch.plan.valid == 0) {
      WorkQueue::enter(batch, first_phase);
      result = Picked::Nothing;
    } else if (!batch.shares_fetches) {
      WorkQueue::enter(batch, first_phase);
      if (!batch.cancelled) queue_.claim_rows(rows_a_claim(Clock::now()), claim);
      result = Picked::Rows;
    } else if (!batch.fetched.empty()) {  // else it was cancelled before it was told where its rows are
      const bool is_read = WorkQueue::is_fetched(batch);
      if (!is_read) batch.phase = Batch::Phase::Fetching;
      result = is_read ? Picked::Fetched : Picked::Waits;
    }
    // For the other rows; there were none when it claimed.
    notify = claim.by == Claimant::Thread && wake_one(Clock::now());
  }
  if (notify) sleepers_.notify();
  if (awaited) settled_.notify_all();
  return result;
}

void Dispatch::push(std::shared_ptr<Stretch> stretch) noexcept {
  bool notify = false;
  {
    const std::lock_guard lock(mutex_);
    queue_.push(std::move(stretch));
    notify = wake_one(Clock::now());  // the thread that planned it may wait for what it plans next
  }
  if (notify) sleepers_.notify();
}

bool Dispatch::part_ended(Stretch& stretch) noexcept {
  const std::lock_guard lock(mutex_);
  ++stretch.ended;
  return stretch.is_read();
}

std::shared_ptr<Batch> Dispatch::take_fetched() noexcept {
  const std::lock_guard lock(mutex_);
  return queue_.take_fetched();
}

void Dispatch::leave_work(const RowReader& reader) noexcept {
  bool notify = false;
  {
    const std::lock_guard lock(mutex_);
    for (Worker* worker : workers_) {
      if (worker->reader.get() == &reader) worker->waits_for_reads = false;
    }
    notify = wake_one(Clock::now());
  }
  if (notify) sleepers_.notify();
}

void Dispatch::lengths_known(Batch& batch) noexcept {
  const std::lock_guard lock(mutex_);
  batch.claimed = batch.plan.valid;  // no row is left to be measured
  batch.phase = Batch::Phase::Measuring;
}

void Dispatch::note_error(Batch& batch, std::uint64_t row, const std::exception_ptr& error) noexcept {
  const std::lock_guard lock(mutex_);
  if (row >= batch.error_row) return;
  batch.error_row = row;
  batch.error = error;
}

void Dispatch::enter(Batch& batch, Batch::Phase phase, const std::exception_ptr& error) noexcept {
  bool notify = false;
  bool awaited = false;
  {
    const std::lock_guard lock(mutex_);
    if (error) batch.error = error;
    if (batch.error) {
      queue_.end(batch, Batch::Phase::Failed);
    } else if (phase == Batch::Phase::Ready) {
      queue_.end(batch, phase);
    } else if (phase == Batch::Phase::NeedsMemory) {
      batch.phase = phase;
    } else {
      WorkQueue::enter(batch, phase);
      notify = wake_one(Clock::now());  // this thread goes on with it, unless it is crowded
    }
    awaited = awaited_ == &batch && is_settled(batch.phase);
  }
  if (notify) sleepers_.notify();
  if (awaited) settled_.notify_all();
}

}  // namespace penstock
