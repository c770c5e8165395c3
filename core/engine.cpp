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

bool is_settled(Batch::Phase phase) {
  return phase == Batch::Phase::Ready || phase == Batch::Phase::Failed || phase == Batch::Phase::NeedsMemory;
}

}  // namespace

Engine::Engine(std::shared_ptr<const Order> order, std::shared_ptr<BatchPool> pool, Reader reader, unsigned threads,
               bool lends, std::size_t wake_at)
    : order_(std::move(order)), pool_(std::move(pool)), lends_(lends), wake_at_(wake_at) {
  try {
    for (unsigned i = 0; i < std::max(threads, 1U); ++i) start_worker(reader);
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

void Engine::start_worker(Reader reader) {
  const SignalsBlocked blocked;
  auto made = std::make_unique<Worker>();
  Worker& worker = *made;
  worker.runner = std::make_unique<RowRunner>([this](const std::shared_ptr<Batch>& batch, std::uint64_t row,
                                                     const std::exception_ptr& error) { row_done(batch, row, error); },
                                              reader);
  workers_.push_back(std::move(made));
  worker.thread = std::thread([this, &worker] { work(worker); });
}

Engine::~Engine() {
  stop();
}

void Engine::stop() {
  cancel_all();
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    for (auto& worker : workers_) worker->runner->wake();
  }
  work_.notify_all();
  for (auto& worker : workers_) {
    if (worker->thread.joinable()) worker->thread.join();
  }
}

void Engine::enqueue(std::shared_ptr<Batch> batch) {
  bool notify = false;
  {
    const std::lock_guard lock(mutex_);
    if (queue_.empty()) hurry_ = false;  // all before it is in some thread's hands: one keeps up
    queue_.push_back(std::move(batch));
    unannounced_ = queue_.size() < wake_at_;
    if (!unannounced_) notify = wake_one();
  }
  if (notify) work_.notify_one();
}

void Engine::announce() {
  if (!std::exchange(unannounced_, false)) return;
  bool notify = false;
  {
    const std::lock_guard lock(mutex_);
    notify = wake_one();
  }
  if (notify) work_.notify_one();
}

Batch::Phase Engine::wait(const Batch& batch, std::chrono::nanoseconds patience) {
  if (is_settled(batch.phase) || patience.count() <= 0) return batch.phase;
  if (!hurry_) {
    const std::lock_guard lock(mutex_);
    hurry_ = unannounced_ = true;
  }
  announce();
  std::unique_lock lock(mutex_);
  awaited_ = &batch;
  ended_.wait_for(lock, patience, [&] { return is_settled(batch.phase); });
  awaited_ = nullptr;
  return batch.phase;
}

void Engine::lend(Batch& batch) {
  batch.place();
  bool notify = false;
  {
    const std::lock_guard lock(mutex_);
    if (batch.plan.valid == 0) return end(batch, Batch::Phase::Ready);
    enter(batch, Batch::Phase::Reading);
    notify = wake_one();
  }
  if (notify) work_.notify_one();
}

void Engine::cancel_all() {
  const std::lock_guard lock(mutex_);
  for (const auto& batch : queue_) batch->cancelled = true;
  queue_.clear();
}

bool Engine::idle() {
  const std::lock_guard lock(mutex_);
  return queue_.empty() && asleep_ == workers_.size() && woken_ == 0;
}

// One more thread for what can be claimed, if there is one that waits; true if work_ is to be notified. One that waits
// for reads comes first: it is about to wake up anyway.
bool Engine::wake_one() {
  for (auto& worker : workers_) {
    if (!worker->waits_for_reads) continue;
    worker->waits_for_reads = false;
    worker->runner->wake();
    return false;
  }
  if (asleep_ == woken_) return false;
  ++woken_;
  return true;
}

bool Engine::can_claim(const Batch& batch) {
  if (batch.phase == Batch::Phase::Planned) return true;
  const bool has_rows = batch.phase == Batch::Phase::Measuring || batch.phase == Batch::Phase::Reading;
  return has_rows && batch.claimed < batch.plan.valid;
}

// The oldest work there is. `more`: another thread would find some too.
bool Engine::claim(Claim& claim, bool& more) {
  const auto at = std::find_if(queue_.begin(), queue_.end(), [](const auto& batch) { return can_claim(*batch); });
  if (at == queue_.end()) return false;
  claim = {*at, (*at)->phase == Batch::Phase::Planned, RowRunner::Part::Whole, 0, 0};
  if (claim.pick) {
    (*at)->phase = Batch::Phase::Picking;
  } else {
    claim_rows(claim);
  }
  more = std::any_of(queue_.begin(), queue_.end(), [](const auto& batch) { return can_claim(*batch); });
  return true;
}

// A batch leaves the queue when its last row is handed out. All threads share in it, so that it is there soon.
void Engine::claim_rows(Claim& claim) {
  Batch& batch = *claim.batch;
  const bool measuring = batch.phase == Batch::Phase::Measuring;
  const std::uint64_t share = (batch.plan.valid + workers_.size() - 1) / workers_.size();
  const std::uint64_t count = std::min({share, kMostRows, batch.plan.valid - batch.claimed});
  claim.part = measuring                    ? RowRunner::Part::Measure
               : batch.format->shape.ragged ? RowRunner::Part::AfterMeasure
                                            : RowRunner::Part::Whole;
  claim.first = batch.claimed;
  claim.last = batch.claimed += count;
  if (measuring || batch.claimed < batch.plan.valid) return;
  queue_.erase(std::find(queue_.begin(), queue_.end(), claim.batch));
}

void Engine::work(Worker& worker) {
  RowRunner& runner = *worker.runner;
  while (true) {
    Claim next;
    bool more = false;
    {
      std::unique_lock lock(mutex_);
      worker.waits_for_reads = false;
      bool claimed = false;
      while (!stop_) {
        claimed = runner.in_flight() < kMostInFlight && claim(next, more);
        if (claimed || runner.in_flight() > 0) break;
        ++asleep_;
        work_.wait(lock, [&] { return woken_ > 0 || stop_; });
        --asleep_;
        if (woken_ > 0) --woken_;
      }
      if (stop_) break;
      worker.waits_for_reads = !claimed && runner.in_flight() < kMostInFlight;
      more = more && hurry_ && wake_one();
    }
    if (more) work_.notify_one();
    if (next.batch) run(worker, next);
    runner.pump(next.batch ? std::chrono::nanoseconds(0) : kPatience);
  }
  // Reads under way write into batches: they end here, before the thread does.
  while (runner.in_flight() > 0) runner.pump(kPatience);
}

void Engine::run(Worker& worker, Claim& claim) {
  if (claim.pick) pick(claim);
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
      fail(batch, 0, error);
    } else {
      enter(batch, batch.format->shape.ragged ? Batch::Phase::Measuring : Batch::Phase::Reading);
      if (!nothing_to_do && !batch.cancelled) claim_rows(claim);
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
    std::uint64_t filled = 0;
    for (const PositionRun& run : batch.plan.runs) {
      order_->pick(run.first, run.stride, std::span(batch.picks).subspan(filled, run.count));
      filled += run.count;
    }
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

void Engine::enter(Batch& batch, Batch::Phase phase) {
  batch.claimed = 0;
  batch.left = batch.plan.valid;
  batch.phase = phase;
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
  bool notify = false;
  bool awaited = false;
  {
    const std::lock_guard lock(mutex_);
    awaited = awaited_ == batch.get();
    if (error) fail(*batch, 0, error);
    if (batch->error) {
      end(*batch, Batch::Phase::Failed);
    } else if (!measured || (batch->plan.valid == 0 && !lends_)) {
      end(*batch, Batch::Phase::Ready);
    } else if (lends_) {
      batch->phase = Batch::Phase::NeedsMemory;
    } else {
      enter(*batch, Batch::Phase::Reading);
      notify = hurry_ && wake_one();  // this thread goes on with it in any case
    }
  }
  // Without the mutex, since who wakes up takes it first.
  if (notify) work_.notify_one();
  if (awaited) ended_.notify_all();
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
