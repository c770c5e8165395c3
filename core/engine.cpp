#include "core/engine.h"

#include "core/error.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <new>
#include <system_error>
#include <utility>

namespace penstock {
namespace {

// A thread takes a few rows at once so that neighbours on disk can be read together and the mutex is taken rarely, but
// leaves rows for the others.
constexpr std::uint64_t kMostRows = 16;
// Rows that one thread keeps under way on channels that do not read at once.
constexpr std::size_t kMostInFlight = 64;
constexpr auto kPatience = std::chrono::milliseconds(50);

// Signals are for the threads that the embedding program made: Python handles them on its main thread.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

bool is_final(Batch::Phase phase) {
  return phase == Batch::Phase::Ready || phase == Batch::Phase::Failed;
}

}  // namespace

Engine::Engine(std::shared_ptr<const Order> order, std::shared_ptr<BatchPool> pool, unsigned threads, bool lends,
               std::size_t wake_at)
    : order_(std::move(order)), pool_(std::move(pool)), lends_(lends), wake_at_(wake_at) {
  const SignalsBlocked blocked;
  for (unsigned i = 0; i < std::max(threads, 1U); ++i) {
    workers_.push_back(std::make_unique<Worker>());
    Worker& worker = *workers_.back();
    worker.runner =
        std::make_unique<RowRunner>([this](const std::shared_ptr<Batch>& batch, std::uint64_t row,
                                           const std::exception_ptr& error) { row_done(batch, row, error); });
    try {
      worker.thread = std::thread([this, &worker] { work(worker); });
    } catch (const std::system_error& error) {
      workers_.pop_back();
      stop();  // those that run would end the process if they were destroyed
      raise(ErrorKind::IoError, "thread {} of {} cannot be started: {}; use fewer threads=", i + 1, threads,
            error.what());
    }
  }
}

Engine::~Engine() {
  stop();
}

void Engine::stop() {
  cancel_all();
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    wake_workers();
  }
  work_.notify_all();
  for (auto& worker : workers_) worker->thread.join();
}

void Engine::wake_workers() {
  for (auto& worker : workers_) {
    if (worker->waits_for_reads) worker->runner->wake();
  }
}

void Engine::enqueue(std::shared_ptr<Batch> batch) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(batch));
    unannounced_ = queue_.size() < wake_at_;
    if (unannounced_) return;
    wake_workers();
  }
  work_.notify_one();
}

void Engine::announce() {
  {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(unannounced_, false)) return;
    wake_workers();
  }
  work_.notify_one();
}

Batch::Phase Engine::wait(const Batch& batch, std::chrono::nanoseconds patience) {
  std::unique_lock lock(mutex_);
  const auto settled = [&] { return is_final(batch.phase) || batch.phase == Batch::Phase::NeedsMemory; };
  if (settled() || patience.count() <= 0) return batch.phase;
  if (unannounced_) {
    lock.unlock();
    announce();
    lock.lock();
  }
  ended_.wait_for(lock, patience, settled);
  return batch.phase;
}

void Engine::lend(Batch& batch) {
  batch.place();
  {
    const std::lock_guard lock(mutex_);
    if (batch.plan.valid == 0) return end(batch, Batch::Phase::Ready);
    enter_reading(batch);
    wake_workers();
  }
  work_.notify_all();
}

void Engine::cancel_all() {
  const std::lock_guard lock(mutex_);
  for (const auto& batch : queue_) batch->cancelled = true;
  queue_.clear();
}

// The oldest work there is. A batch leaves the queue when its last row is handed out.
bool Engine::claim(Claim& claim) {
  for (auto at = queue_.begin(); at != queue_.end(); ++at) {
    Batch& batch = **at;
    if (batch.phase == Batch::Phase::Planned) {
      batch.phase = Batch::Phase::Picking;
      claim = {*at, true, RowRunner::Part::Whole, 0, 0};
      return true;
    }
    const bool measuring = batch.phase == Batch::Phase::Measuring;
    if ((!measuring && batch.phase != Batch::Phase::Reading) || batch.claimed == batch.plan.valid) continue;
    const std::uint64_t share = (batch.plan.valid + workers_.size() - 1) / workers_.size();
    const std::uint64_t count =
        std::min({std::clamp<std::uint64_t>(share, 1, kMostRows), batch.plan.valid - batch.claimed});
    const auto part = measuring                    ? RowRunner::Part::Measure
                      : batch.format->shape.ragged ? RowRunner::Part::AfterMeasure
                                                   : RowRunner::Part::Whole;
    claim = {*at, false, part, batch.claimed, batch.claimed + count};
    batch.claimed += count;
    if (!measuring && batch.claimed == batch.plan.valid) queue_.erase(at);
    return true;
  }
  return false;
}

void Engine::work(Worker& worker) {
  RowRunner& runner = *worker.runner;
  while (true) {
    Claim next;
    {
      std::unique_lock lock(mutex_);
      worker.waits_for_reads = false;
      bool claimed = false;
      while (!stop_) {
        claimed = runner.in_flight() < kMostInFlight && claim(next);
        if (claimed || runner.in_flight() > 0) break;
        work_.wait(lock);
      }
      if (stop_) break;
      worker.waits_for_reads = !claimed;
    }
    if (next.batch) run(worker, next);
    runner.pump(next.batch ? std::chrono::nanoseconds(0) : kPatience);
  }
  // Reads under way write into batches: they end here, before the thread does.
  while (runner.in_flight() > 0) runner.pump(kPatience);
}

void Engine::run(Worker& worker, const Claim& claim) {
  if (claim.pick) return pick(claim.batch);
  for (std::uint64_t row = claim.first; row < claim.last; ++row) {
    if (claim.batch->cancelled) {
      row_done(claim.batch, row, nullptr);
      continue;
    }
    try {
      worker.runner->start(claim.batch, row, claim.part);
    } catch (...) {
      row_done(claim.batch, row, std::current_exception());
    }
  }
}

void Engine::pick(const std::shared_ptr<Batch>& batch) {
  std::exception_ptr error;
  try {
    batch->picks.resize(batch->plan.valid);
    std::uint64_t filled = 0;
    for (const PositionRun& run : batch->plan.runs) {
      order_->pick(run.first, run.stride, std::span(batch->picks).subspan(filled, run.count));
      filled += run.count;
    }
    batch->prepare_rows();
    if (!batch->format->shape.ragged) batch->place();
  } catch (const std::bad_alloc&) {
    error = std::make_exception_ptr(Error(
        ErrorKind::InvalidArgument,
        fmt::format("no memory for a batch of {} rows: use a smaller batch size", with_commas(batch->plan.rows))));
  } catch (...) {
    error = std::current_exception();
  }
  const bool nothing_to_do = batch->plan.valid == 0;
  {
    const std::lock_guard lock(mutex_);
    if (error) {
      fail(*batch, 0, error);
    } else if (batch->format->shape.ragged) {
      batch->phase = Batch::Phase::Measuring;
      batch->claimed = 0;
      batch->left = batch->plan.valid;
    } else {
      enter_reading(*batch);
    }
  }
  if (error) return ended_.notify_all();
  if (nothing_to_do) return phase_done(batch);
  work_.notify_all();
}

void Engine::enter_reading(Batch& batch) {
  batch.phase = Batch::Phase::Reading;
  batch.claimed = 0;
  batch.left = batch.plan.valid;
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
    pool_->account(*batch);
  } catch (...) {
    error = std::current_exception();
  }
  bool goes_on = false;
  {
    const std::lock_guard lock(mutex_);
    if (error) fail(*batch, 0, error);
    if (batch->error) {
      end(*batch, Batch::Phase::Failed);
    } else if (!measured || (batch->plan.valid == 0 && !lends_)) {
      end(*batch, Batch::Phase::Ready);
    } else if (lends_) {
      batch->phase = Batch::Phase::NeedsMemory;
    } else {
      enter_reading(*batch);
      goes_on = true;
    }
  }
  // Without the mutex, since who wakes up takes it first.
  if (goes_on) {
    work_.notify_all();
  } else {
    ended_.notify_all();
  }
}

void Engine::fail(Batch& batch, std::uint64_t row, const std::exception_ptr& error) {
  batch.error_row = row;
  batch.error = error;
  end(batch, Batch::Phase::Failed);
}

void Engine::end(Batch& batch, Batch::Phase phase) {
  batch.phase = phase;
  const auto at =
      std::find_if(queue_.begin(), queue_.end(), [&](const auto& queued) { return queued.get() == &batch; });
  if (at != queue_.end()) queue_.erase(at);
}

}  // namespace penstock
