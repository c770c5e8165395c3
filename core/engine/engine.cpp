#include "core/engine/engine.h"

#include "core/base/error.h"
#include "core/base/threads.h"

#include <algorithm>
#include <new>
#include <system_error>
#include <utility>

namespace penstock {
namespace {

// Rows that one thread keeps under way on channels that do not read at once.
constexpr std::size_t kMostInFlight = 64;
constexpr auto kPatience = std::chrono::milliseconds(50);
// After so many more batches without a wait one more may be unread before a thread is called. A stall, where that was
// too much, comes once in as many batches.
constexpr std::size_t kReadyBatches = 32;
// A consumer that misses the page cache time and again hardly tries any more.
constexpr unsigned kMostRest = 1024;

bool is_settled(Batch::Phase phase) {
  return phase == Batch::Phase::Ready || phase == Batch::Phase::Failed || phase == Batch::Phase::NeedsMemory;
}

}  // namespace

Engine::Engine(std::shared_ptr<const Job> job, std::shared_ptr<BatchPool> pool, const StoreChoice& through,
               unsigned threads, bool lends, std::size_t most_unread)
    : job_(std::move(job)),
      pool_(std::move(pool)),
      lends_(lends),
      most_unread_(most_unread),
      crew_(threads, usable_cores()),
      helper_([this](const auto& batch, std::uint64_t row, Outcome outcome,
                     const auto& error) { helped_row_done(batch, row, outcome, error); },
              through, ChannelMode::NonBlocking) {
  try {
    for (unsigned i = 0; i < threads; ++i) start_worker(through);
  } catch (const std::system_error& error) {
    const std::size_t started = workers_.size() - 1;
    stop();
    raise(ErrorKind::IoError, "thread {} of {} cannot be started: {}; use fewer threads=", started + 1, threads,
          error.what());
  } catch (...) {
    stop();  // threads that run would end the process if they were destroyed
    throw;
  }
}

void Engine::start_worker(const StoreChoice& through) {
  const SignalsBlocked blocked;
  auto made = std::make_unique<Worker>();
  Worker& worker = *made;
  worker.runner = std::make_unique<RowRunner>(
      [this](const auto& batch, std::uint64_t row, Outcome, const auto& error) { row_done(batch, row, error); },
      through, ChannelMode::MayWait);
  workers_.push_back(std::move(made));
  worker.thread = std::thread([this, &worker] { work(worker); });
}

Engine::~Engine() {
  stop();
}

void Engine::stop() {
  {
    const std::lock_guard lock(mutex_);
    queue_.cancel_all();
    crew_.dismiss();
    for (auto& worker : workers_) worker->runner->wake();
  }
  for (auto& worker : workers_) {
    if (worker->thread.joinable()) worker->thread.join();
  }
}

void Engine::enqueue(std::shared_ptr<Batch> batch) {
  bool notify = false;
  {
    const std::lock_guard lock(mutex_);
    if (queue_.empty()) hurry_ = false;  // all before it is in some thread's hands: one keeps up
    queue_.push(std::move(batch));
    ++ready_;
    crew_.consumer_takes();
    // One thread that is at work does where the consumer does not wait, as long as it keeps up.
    const bool comes =
        ready_ > kReadyBatches && queue_.batches() <= most_unread_ && crew_.is_on_watch() && !any_waits_for_reads();
    unannounced_ = queue_.batches() < call_at() || comes;
    if (!unannounced_) notify = call_one();
  }
  if (notify) crew_.notify();
}

bool Engine::any_waits_for_reads() const {
  return std::any_of(workers_.begin(), workers_.end(), [](const auto& worker) { return worker->waits_for_reads; });
}

// How many batches are to be read before a thread is called for them.
std::size_t Engine::call_at() const noexcept {
  return std::min(1 + ready_ / kReadyBatches, most_unread_);
}

void Engine::announce() {
  if (!std::exchange(unannounced_, false)) return;
  bool notify = false;
  {
    const std::lock_guard lock(mutex_);
    notify = call_one();
  }
  if (notify) crew_.notify();
}

Batch::Phase Engine::wait(const Batch& batch, std::chrono::nanoseconds patience) {
  if (is_settled(batch.phase) || patience.count() <= 0) return batch.phase;
  const auto deadline = std::chrono::steady_clock::now() + patience;
  {
    const std::lock_guard lock(mutex_);
    ready_ = 0;
    hurry_ = unannounced_ = true;
  }
  announce();
  bool helps = rest_ == 0;
  if (!helps) --rest_;
  while (helps && !is_settled(batch.phase) && std::chrono::steady_clock::now() < deadline) helps = help();
  std::unique_lock lock(mutex_);
  if (!is_settled(batch.phase)) {
    crew_.consumer_sleeps();
    awaited_ = &batch;
    ended_.wait_until(lock, deadline, [&] { return is_settled(batch.phase); });
    awaited_ = nullptr;
  }
  crew_.consumer_leaves();
  return batch.phase;
}

// The consumer takes work as a thread does; false if there is none for it.
bool Engine::help() {
  Claim claim;
  bool notify = false;
  {
    const std::lock_guard lock(mutex_);
    if (!queue_.claim(Claimant::Consumer, crew_.beside_consumer(), claim)) return false;
    crew_.consumer_helps();
    notify = queue_.has_work() && call_one();
  }
  if (notify) crew_.notify();
  missed_ = false;
  run(helper_, claim);
  helper_.pump(std::chrono::nanoseconds(0));
  if (missed_) {
    rest_ = next_rest_;
    next_rest_ = std::min(2 * next_rest_, kMostRest);
  } else {
    next_rest_ = 1;
  }
  return !missed_;
}

// A row that the page cache does not hold is for a thread, which may wait.
void Engine::helped_row_done(const std::shared_ptr<Batch>& batch, std::uint64_t row, Outcome outcome,
                             const std::exception_ptr& error) {
  if (outcome != Outcome::NotAtHand) return row_done(batch, row, error);
  missed_ = true;
  bool notify = false;
  {
    const std::lock_guard lock(mutex_);
    queue_.give_back(batch, row);
    crew_.consumer_sleeps();
    notify = call_one();
  }
  if (notify) crew_.notify();
}

void Engine::lend(Batch& batch) {
  batch.place();
  if (batch.plan.valid == 0) batch.finish();  // nothing is read
  bool notify = false;
  {
    const std::lock_guard lock(mutex_);
    if (batch.plan.valid == 0) return queue_.end(batch, Batch::Phase::Ready);
    WorkQueue::enter(batch, Batch::Phase::Reading);
    notify = call_one();
  }
  if (notify) crew_.notify();
}

void Engine::cancel_all() {
  const std::lock_guard lock(mutex_);
  queue_.cancel_all();
}

bool Engine::idle() {
  const std::lock_guard lock(mutex_);
  return queue_.empty() && crew_.all_asleep();
}

// One more thread for what can be claimed. One that waits for reads comes first: it is about to wake up anyway.
bool Engine::call_one() {
  for (auto& worker : workers_) {
    if (!worker->waits_for_reads) continue;
    worker->waits_for_reads = false;
    worker->runner->wake();
    return false;
  }
  return crew_.call();
}

// Something to do for this thread, which sleeps until there is, unless it has reads under way. False: nothing (more)
// but those.
bool Engine::next_claim(Worker& worker, Claim& claim) {
  RowRunner& runner = *worker.runner;
  bool claimed = false;
  bool notify = false;
  {
    std::unique_lock lock(mutex_);
    worker.waits_for_reads = false;
    while (!crew_.dismissed()) {
      const bool may_claim = runner.in_flight() < kMostInFlight && !(runner.in_flight() == 0 && crew_.is_crowded());
      claimed = may_claim && queue_.claim(Claimant::Thread, crew_.most_awake(), claim);
      if (claimed || runner.in_flight() > 0) break;
      crew_.sleep(lock, ready_ < kReadyBatches ? 0 : call_at());
    }
    worker.waits_for_reads = !claimed && runner.in_flight() < kMostInFlight && !crew_.dismissed();
    if (claimed) crew_.found_work();
    notify = claimed && hurry_ && queue_.has_work() && call_one();
  }
  if (notify) crew_.notify();
  return claimed;
}

void Engine::work(Worker& worker) {
  RowRunner& runner = *worker.runner;
  while (true) {
    Claim claim;
    const bool claimed = next_claim(worker, claim);
    if (!claimed && runner.in_flight() == 0) return;  // dismissed
    if (claimed) run(runner, claim);
    runner.pump(claimed ? std::chrono::nanoseconds(0) : kPatience);
  }
}

void Engine::run(RowRunner& runner, Claim& claim) {
  if (claim.pick) pick(claim);
  for (std::uint64_t row = claim.first; row < claim.last; ++row) {
    if (claim.batch->cancelled) {
      row_done(claim.batch, row, nullptr);
      continue;
    }
    try {
      runner.start(claim.batch, row, claim.part);
    } catch (...) {
      row_done(claim.batch, row, std::current_exception());
    }
  }
}

// Asks the order, and goes on with the first rows.
void Engine::pick(Claim& claim) {
  Batch& batch = *claim.batch;
  const std::exception_ptr error = prepare(batch);
  const bool nothing_to_do = batch.plan.valid == 0;
  bool awaited = false;
  {
    const std::lock_guard lock(mutex_);
    awaited = awaited_ == &batch;
    if (error) {
      queue_.fail(batch, 0, error);
    } else {
      WorkQueue::enter(batch, batch.format->shape.ragged ? Batch::Phase::Measuring : Batch::Phase::Reading);
      if (!nothing_to_do && !batch.cancelled) queue_.claim_rows(crew_.most_awake(), claim);
    }
  }
  if (error) {
    if (awaited) ended_.notify_all();
  } else if (nothing_to_do) {
    phase_done(claim.batch);
  }
}

std::exception_ptr Engine::prepare(Batch& batch) const {
  try {
    batch.picks.resize(batch.plan.valid);
    job_->pick(batch.plan, batch.picks);
    batch.prepare_rows();
    if (!batch.format->shape.ragged) batch.place();
    return nullptr;
  } catch (const std::bad_alloc&) {
    return std::make_exception_ptr(
        Error(ErrorKind::InvalidArgument,
              fmt::format("no memory for a batch of {} rows: use a smaller batch size", with_commas(batch.plan.rows))));
  } catch (...) {
    return std::current_exception();
  }
}

void Engine::row_done(const std::shared_ptr<Batch>& batch, std::uint64_t row, const std::exception_ptr& error) {
  if (error) {
    const std::lock_guard lock(mutex_);
    // The lowest row's error, so that the same one is reported whatever the threads did.
    if (row < batch->error_row) {
      batch->error_row = row;
      batch->error = error;
    }
  }
  if (batch->left.fetch_sub(1) == 1) phase_done(batch);
}

void Engine::phase_done(const std::shared_ptr<Batch>& batch) {
  // No mutex for what is read here: the last row has ended, so no other thread changes the batch, and the `left` that
  // each row counts down orders what they wrote before this.
  const bool measured = batch->phase == Batch::Phase::Measuring;
  std::exception_ptr error;
  try {
    if (measured && !batch->error) {
      batch->measure();
      if (!lends_) {
        batch->slab.ensure(batch->needed_bytes());
        batch->place();
      }
    }
    const bool filled = !measured || (batch->plan.valid == 0 && !lends_);
    if (filled && !batch->error && !batch->cancelled) batch->finish();
    pool_->account(*batch);
  } catch (...) {
    error = std::current_exception();
  }
  bool notify = false;
  bool awaited = false;
  {
    const std::lock_guard lock(mutex_);
    awaited = awaited_ == batch.get();
    if (error) queue_.fail(*batch, 0, error);
    if (batch->error) {
      queue_.end(*batch, Batch::Phase::Failed);
    } else if (!measured || (batch->plan.valid == 0 && !lends_)) {
      queue_.end(*batch, Batch::Phase::Ready);
    } else if (lends_) {
      batch->phase = Batch::Phase::NeedsMemory;
    } else {
      WorkQueue::enter(*batch, Batch::Phase::Reading);
      notify = hurry_ && call_one();  // this thread goes on with it, unless it is crowded
    }
  }
  // Without the mutex, since who wakes up takes it first.
  if (notify) crew_.notify();
  if (awaited) ended_.notify_all();
}

}  // namespace penstock
