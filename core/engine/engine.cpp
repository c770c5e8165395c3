#include "core/engine/engine.h"

#include "core/base/error.h"
#include "core/base/threads.h"

#include <algorithm>
#include <new>
#include <system_error>
#include <utility>

namespace penstock {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kPatience = std::chrono::milliseconds(50);
// A consumer that misses the page cache time and again hardly tries any more.
constexpr unsigned kMostRest = 1024;

bool is_settled(Batch::Phase phase) {
  return phase == Batch::Phase::Ready || phase == Batch::Phase::Failed || phase == Batch::Phase::NeedsMemory;
}

bool is_read(const std::shared_ptr<void>& stretch) {
  return static_cast<const Stretch*>(stretch.get())->is_read();
}

}  // namespace

Engine::Engine(EngineOptions options, std::shared_ptr<const Job> job, std::shared_ptr<BatchPool> pool,
               std::shared_ptr<MemoryBound> bound)
    : options_(std::move(options)),
      first_job_(std::move(job)),
      pool_(std::move(pool)),
      bound_(std::move(bound)),
      planner_(options_.formats, options_.share, pool_, bound_),
      wakeups_(options_.threads, options_.cores),
      sleepers_(options_.threads),
      job_(first_job_),
      helper_([this](const RowReader::Ended& ended) { helped_row_done(ended); }, options_.through,
              ChannelMode::NonBlocking) {
  try {
    for (unsigned i = 0; i < options_.threads; ++i) start_worker();
  } catch (const std::system_error& error) {
    const std::size_t started = workers_.size() - 1;
    stop();
    raise(ErrorKind::IoError, "thread {} of {} cannot be started: {}; use fewer threads=", started + 1,
          options_.threads, error.what());
  } catch (...) {
    stop();  // threads that run would end the process if they were destroyed
    throw;
  }
}

void Engine::start_worker() {
  const SignalsBlocked blocked;
  auto made = std::make_unique<Worker>();
  Worker& worker = *made;
  worker.reader = std::make_unique<RowReader>(
      [this, &worker](const RowReader::Ended& ended) {
        ++worker.rows_ended;
        row_done(ended.batch, ended.row, ended.error);
      },
      options_.through, ChannelMode::MayWait);
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
    sleepers_.dismiss();
    for (auto& worker : workers_) worker->reader->wake();
  }
  for (auto& worker : workers_) {
    if (worker->thread.joinable()) worker->thread.join();
  }
}

// --- the consumer

void Engine::enqueue(std::shared_ptr<Batch> batch) {
  const std::uint64_t position = batch->plan.position;
  if (!shares_fetches_ && job_->order().fetch_end(position) > position + 1) {
    shares_fetches_ = true;
    const std::lock_guard lock(planner_mutex_);
    planner_.restart(job_, position);
  }
  batch->shares_fetches = shares_fetches_;
  enqueued_ = true;
  const std::lock_guard lock(mutex_);
  queue_.push(std::move(batch));
}

void Engine::top_up(std::size_t planned) {
  if (!taken_ && !enqueued_) return;
  enqueued_ = false;
  const auto now = Clock::now();
  bool notify = false;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(taken_, false)) wakeups_.batch_taken(now);
    const std::size_t ready = planned - std::min(planned, queue_.unfinished());
    if (ready <= wakeups_.low_water(planned)) notify = wake_one(now);
  }
  if (notify) sleepers_.notify();
}

Batch::Phase Engine::wait(const Batch& batch, std::chrono::nanoseconds patience) {
  if (is_settled(batch.phase) || patience.count() <= 0) return batch.phase;
  const auto deadline = Clock::now() + patience;
  bool notify = false;
  {
    const std::lock_guard lock(mutex_);
    wakeups_.consumer_waits();
    notify = wake_one(Clock::now());
  }
  if (notify) sleepers_.notify();
  bool helps = rest_ == 0;
  if (!helps) --rest_;
  while (helps && !is_settled(batch.phase) && Clock::now() < deadline) helps = help();
  std::unique_lock lock(mutex_);
  if (!is_settled(batch.phase)) {
    wakeups_.consumer_reads(false);
    awaited_ = &batch;
    ended_.wait_until(lock, deadline, [&] { return is_settled(batch.phase); });
    awaited_ = nullptr;
  }
  wakeups_.consumer_leaves(Clock::now());
  return batch.phase;
}

// The consumer takes rows as a thread does; false if there are none for it.
bool Engine::help() {
  Claim claim;
  bool notify = false;
  {
    const std::lock_guard lock(mutex_);
    if (!queue_.claim(Claimant::Consumer, rows_a_claim(Clock::now()), claim)) return false;
    wakeups_.consumer_reads(true);
    notify = wake_one(Clock::now());
  }
  if (notify) sleepers_.notify();
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

// A row that is not at hand is for a thread, which may wait.
void Engine::helped_row_done(const RowReader::Ended& ended) {
  if (!ended.not_at_hand) return row_done(ended.batch, ended.row, ended.error);
  missed_ = true;
  bool notify = false;
  {
    const std::lock_guard lock(mutex_);
    queue_.give_back(ended.batch, ended.row);
    wakeups_.consumer_reads(false);
    notify = wake_one(Clock::now());
  }
  if (notify) sleepers_.notify();
}

void Engine::lend(Batch& batch) {
  batch.place();
  if (batch.plan.valid == 0) batch.finish();  // nothing is read
  bool notify = false;
  {
    const std::lock_guard lock(mutex_);
    if (batch.plan.valid == 0) return queue_.end(batch, Batch::Phase::Ready);
    WorkQueue::enter(batch, Batch::Phase::Reading);
    notify = wake_one(Clock::now());
  }
  if (notify) sleepers_.notify();
}

void Engine::cancel_all() {
  const std::lock_guard planner_lock(planner_mutex_);
  const std::lock_guard lock(mutex_);
  // Batches before fetches: rows of a cancelled fetch end without their bytes, and no batch may take them then.
  queue_.cancel_all();
  planner_.stop();
  shares_fetches_ = false;
}

void Engine::restart(std::shared_ptr<const Job> job) {
  job_ = std::move(job);
}

bool Engine::idle() {
  const std::lock_guard lock(mutex_);
  return queue_.empty() && sleepers_.all_asleep();
}

// --- the threads

std::uint64_t Engine::rows_a_claim(Wakeups::Time now) const {
  return wakeups_.rows_a_claim(queue_.next_batch_rows(), wakeups_.most_awake(now));
}

// One more thread, if there is work and more are wanted. One that waits for reads comes first: it is awake.
bool Engine::wake_one(Wakeups::Time now) {
  if (!queue_.has_work()) return false;
  for (auto& worker : workers_) {
    if (!worker->waits_for_reads) continue;
    worker->waits_for_reads = false;
    worker->reader->wake();
    return false;
  }
  return sleepers_.wake(wakeups_.threads_wanted(now));
}

// Something to do for this thread, which sleeps until there is, unless it has reads under way. False: nothing (more)
// but those.
bool Engine::next_claim(Worker& worker, Claim& claim, Wakeups::Time& now) {
  RowReader& reader = *worker.reader;
  bool claimed = false;
  bool notify = false;
  {
    std::unique_lock lock(mutex_);
    worker.waits_for_reads = false;
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
    notify = claimed && wake_one(now);
    if (claimed && claim.batch) worker.batch_rows = claim.batch->plan.valid;
  }
  if (notify) sleepers_.notify();
  return claimed;
}

void Engine::work(Worker& worker) {
  RowReader& reader = *worker.reader;
  auto now = Clock::now();
  while (true) {
    Claim claim;
    const bool claimed = next_claim(worker, claim, now);
    if (!claimed && reader.is_idle()) return;  // dismissed
    if (claimed) run(reader, claim);
    reader.pump(claimed ? std::chrono::nanoseconds(0) : kPatience);
    const auto began = std::exchange(now, Clock::now());
    worker.busy += now - began;
  }
}

void Engine::run(RowReader& reader, Claim& claim) {
  if (claim.stretch) return run_part(reader, claim);
  if (claim.pick) pick(claim);
  for (std::uint64_t row = claim.first; row < claim.last; ++row) {
    if (claim.batch->cancelled) {
      row_done(claim.batch, row, nullptr);
    } else if (claim.batch->shares_fetches) {
      adopt(claim.batch, row);
    } else {
      try {
        reader.start(claim.batch, row, claim.part);
      } catch (...) {
        row_done(claim.batch, row, std::current_exception());
      }
    }
  }
}

// Asks the job, and goes on with the first rows.
void Engine::pick(Claim& claim) {
  Batch& batch = *claim.batch;
  std::exception_ptr error;
  std::vector<std::shared_ptr<Stretch>> planned;
  try {
    error = prepare(batch);
    if (!error && batch.shares_fetches) {
      const std::lock_guard lock(planner_mutex_);
      if (!batch.cancelled) planner_.give_rows(batch, planned);
    }
  } catch (...) {
    error = std::current_exception();
  }
  const bool nothing_to_do = batch.plan.valid == 0;
  bool awaited = false;
  bool is_fetched = false;
  bool notify = false;
  {
    const std::lock_guard lock(mutex_);
    awaited = awaited_ == &batch;
    for (auto& stretch : planned) {
      if (!stretch->parts.empty() && !batch.cancelled) queue_.push(std::move(stretch));
    }
    if (error) {
      queue_.fail(batch, 0, error);
    } else if (nothing_to_do) {
      WorkQueue::enter(batch, batch.format->shape.ragged ? Batch::Phase::Measuring : Batch::Phase::Reading);
    } else if (batch.shares_fetches && batch.fetched.empty()) {
      // Cancelled before it was told where its rows are: nobody waits for it.
    } else if (batch.shares_fetches) {
      is_fetched = std::all_of(batch.fetches.begin(), batch.fetches.end(), is_read);
      if (!is_fetched) batch.phase = Batch::Phase::Fetching;
    } else {
      WorkQueue::enter(batch, batch.format->shape.ragged ? Batch::Phase::Measuring : Batch::Phase::Reading);
      if (!batch.cancelled) queue_.claim_rows(rows_a_claim(Clock::now()), claim);
    }
    notify =
        claim.by == Claimant::Thread && wake_one(Clock::now());  // for the other rows; there were none when it claimed
  }
  if (notify) sleepers_.notify();
  if (error) {
    if (awaited) ended_.notify_all();
  } else if (nothing_to_do) {
    phase_done(claim.batch);
  } else if (is_fetched) {
    fetched(claim.batch);
  }
}

std::exception_ptr Engine::prepare(Batch& batch) {
  try {
    batch.picks.resize(batch.plan.valid);
    first_job_->pick(batch.plan, batch.picks);
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

// --- fetches

void Engine::run_part(RowReader& reader, const Claim& claim) {
  const std::shared_ptr<Stretch>& stretch = claim.stretch;
  FetchPart& part = *claim.fetch_part;
  const auto place = [stretch, &part] {
    part.place();
    stretch->account(part);
  };
  try {
    if (!part.format->shape.ragged) place();
    reader.start(RowGroup{.owner = stretch,
                          .format = part.format,
                          .rows = part.rows,
                          .cancelled = &stretch->cancelled,
                          .place = place,
                          .done = [this, stretch, &part] {
                            stretch->account(part);
                            part_ended(stretch);
                          }});
  } catch (...) {
    for (Row& row : part.rows) row.error = std::current_exception();
    part_ended(stretch);
  }
}

// The batches that waited for it go on; then the stretch after it is planned, if memory allows it.
void Engine::part_ended(const std::shared_ptr<Stretch>& stretch) {
  std::vector<std::shared_ptr<Batch>> complete;
  bool is_complete = false;
  {
    const std::lock_guard lock(mutex_);
    complete = queue_.part_ended(*stretch);
    is_complete = stretch->is_read() && !stretch->cancelled;
  }
  for (const auto& batch : complete) fetched(batch);
  if (!is_complete) return;
  std::shared_ptr<Stretch> ahead;
  const std::lock_guard planner_lock(planner_mutex_);
  try {
    ahead = planner_.plan_ahead();
  } catch (...) {
    return;  // who needs it plans it, and is told of an error
  }
  if (!ahead || ahead->parts.empty()) return;
  const std::lock_guard lock(mutex_);
  queue_.push(std::move(ahead));
}

// All of the batch's rows have been read, or failed; it is in phase Picking.
void Engine::fetched(const std::shared_ptr<Batch>& batch) {
  const bool ragged = batch->format->shape.ragged;
  for (std::uint64_t i = 0; i < batch->plan.valid; ++i) {
    if (batch->fetched[i]->error && i < batch->error_row) {
      batch->error_row = i;
      batch->error = batch->fetched[i]->error;
    }
    if (ragged) batch->rows[i].length = batch->fetched[i]->length;
  }
  if (ragged || batch->error) {
    {
      const std::lock_guard lock(mutex_);
      batch->claimed = batch->plan.valid;  // no row is left to be measured
      batch->phase = Batch::Phase::Measuring;
    }
    return phase_done(batch);
  }
  bool notify = false;
  {
    const std::lock_guard lock(mutex_);
    WorkQueue::enter(*batch, Batch::Phase::Reading);
    notify = wake_one(Clock::now());
  }
  if (notify) sleepers_.notify();
}

void Engine::adopt(const std::shared_ptr<Batch>& batch, std::uint64_t row) {
  std::exception_ptr error;
  try {
    batch->adopt_row(row);
    batch->finish_row(row);
  } catch (...) {
    error = std::current_exception();
  }
  row_done(batch, row, error);
}

// --- where rows end

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
      if (!options_.lends) {
        batch->slab.ensure(batch->needed_bytes());
        batch->place();
      }
    }
    const bool filled = !measured || (batch->plan.valid == 0 && !options_.lends);
    if (filled && !batch->error && !batch->cancelled) batch->finish();
    if (!measured || batch->error) {
      batch->fetched.clear();
      batch->fetches.clear();
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
    if (error) batch->error = error;
    if (batch->error) {
      queue_.end(*batch, Batch::Phase::Failed);
    } else if (!measured || (batch->plan.valid == 0 && !options_.lends)) {
      queue_.end(*batch, Batch::Phase::Ready);
    } else if (options_.lends) {
      batch->phase = Batch::Phase::NeedsMemory;
    } else {
      WorkQueue::enter(*batch, Batch::Phase::Reading);
      notify = wake_one(Clock::now());  // this thread goes on with it, unless it is crowded
    }
  }
  // After unlocking, since the woken thread needs the mutex.
  if (notify) sleepers_.notify();
  if (awaited) ended_.notify_all();
}

}  // namespace penstock
