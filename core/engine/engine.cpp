#include "core/engine/engine.h"

#include "core/base/error.h"
#include "core/base/sync.h"
#include "core/base/threads.h"

#include <algorithm>
#include <exception>
#include <system_error>

namespace penstock {
namespace {

using sync::Clock;

constexpr auto kPumpPatience = std::chrono::milliseconds(50);
// A consumer that misses the page cache time and again hardly tries any more.
constexpr unsigned kMostRest = 1024;

}  // namespace

Engine::Engine(const EngineOptions& options, std::shared_ptr<const Job> job, const std::shared_ptr<BatchPool>& pool,
               std::shared_ptr<MemoryBound> bound)
    : counters_(options.counters ? options.counters : std::make_shared<Counters>(options.threads)),
      hand_over_(options.hand_over),
      dispatch_(options.threads, options.cores),
      assembly_(dispatch_, FetchPlanner(options.formats, options.rows, pool, std::move(bound)), options.rows, pool,
                options.lends, options.hand_over),
      job_(std::move(job)),
      helper_([this](const RowReader::Ended& ended) { helped_row_done(ended); }, options.through,
              ChannelMode::NonBlocking, &counters_->reads[options.threads], &changes_) {
  if (hand_over_) {
    hand_over_->open(
        [this](Batch& batch, const std::exception_ptr& error) { dispatch_.enter(batch, Batch::Phase::Ready, error); });
  }
  try {
    for (unsigned i = 0; i < options.threads; ++i) start_thread(options.through);
  } catch (const std::system_error& error) {
    const std::size_t number = threads_.size();
    stop();
    raise(ErrorKind::IoError, "thread {} of {} cannot be started: {}; use fewer threads=", number, options.threads,
          error.what());
  } catch (...) {
    stop();  // threads that run would end the process if they were destroyed
    throw;
  }
}

void Engine::start_thread(const StoreChoice& through) {
  const SignalsBlocked blocked;
  Thread& made = *threads_.emplace_back(std::make_unique<Thread>());
  Dispatch::Worker& worker = made.worker;
  worker.reader = std::make_unique<RowReader>(
      [this, &worker](const RowReader::Ended& ended) {
        ++worker.rows_ended;
        assembly_.row_done(ended.batch, ended.row, ended.error);
      },
      through, ChannelMode::MayWait, &counters_->reads[threads_.size() - 1], &changes_);
  dispatch_.add(worker);
  made.thread = sync::Thread([this, &worker] { work(worker); });
}

Engine::~Engine() {
  stop();
}

void Engine::stop() {
  cancel_all();
  if (hand_over_) hand_over_->detach();
  dispatch_.dismiss();
  for (const auto& each : threads_) {
    if (each->thread.joinable()) each->thread.join();
  }
}

void Engine::work(Dispatch::Worker& worker) {
  // Makes what C++ keeps for this thread's exceptions: without memory for it the first one would end the process.
  [[maybe_unused]] const volatile int none = std::uncaught_exceptions();  // volatile: it would not be called else
  RowReader& reader = *worker.reader;
  auto now = Clock::now();
  while (true) {
    Claim claim;
    const bool claimed = dispatch_.claim(worker, claim, now);
    if (!claimed && reader.is_idle()) return;  // dismissed
    if (claimed) assembly_.run(reader, claim);
    reader.pump(claimed ? std::chrono::nanoseconds(0) : kPumpPatience);
    const auto began = std::exchange(now, Clock::now());
    worker.busy += now - began;
  }
}

// --- the consumer

void Engine::enqueue(std::shared_ptr<Batch> batch) {
  const std::uint64_t position = batch->plan.position;
  if (!shares_fetches_ && job_->order().fetch_end(position) > position + 1) {
    assembly_.restart_fetches(job_, position);
    shares_fetches_ = true;
  }
  batch->shares_fetches = shares_fetches_;
  dispatch_.push(std::move(batch));
  enqueued_ = true;
}

void Engine::top_up(std::size_t planned) {
  if (!taken_ && !enqueued_) return;
  enqueued_ = false;
  counters_->queue_depth.set(dispatch_.top_up(planned, std::exchange(taken_, false)));
}

Batch::Phase Engine::wait(const Batch& batch, std::chrono::nanoseconds patience) {
  if (is_settled(batch.phase) || patience.count() <= 0) return batch.phase;
  const auto deadline = Clock::now() + patience;
  dispatch_.consumer_waits();
  bool helps = rest_ == 0;
  if (!helps) --rest_;
  while (helps && !is_settled(batch.phase) && Clock::now() < deadline) helps = help();
  dispatch_.sleep_until_settled(batch, deadline);
  return batch.phase;
}

// The consumer takes rows as a thread does; false if there are none for it.
bool Engine::help() {
  Claim claim;
  if (!dispatch_.claim_for_consumer(claim)) return false;
  missed_ = false;
  assembly_.run(helper_, claim);
  helper_.pump(std::chrono::nanoseconds(0));
  if (missed_) {
    rest_ = next_rest_;
    next_rest_ = std::min(2 * next_rest_, kMostRest);
  } else {
    next_rest_ = 1;
  }
  return !missed_;
}

void Engine::helped_row_done(const RowReader::Ended& ended) {
  if (!ended.not_at_hand) return assembly_.row_done(ended.batch, ended.row, ended.error);
  missed_ = true;
  dispatch_.give_back(ended.batch, ended.row);
}

void Engine::cancel(std::span<const std::shared_ptr<Batch>> batches) {
  if (!shares_fetches_) return assembly_.cancel(batches);
  for (const auto& batch : batches) batch->cancelled = true;
  cancel_all();
}

void Engine::cancel_all() {
  assembly_.cancel_all();
  shares_fetches_ = false;
}

}  // namespace penstock
