#include "core/engine/loader.h"

#include "core/base/error.h"
#include "core/base/fork_count.h"
#include "core/base/sync.h"
#include "core/engine/batch_memory.h"

#include <unistd.h>

#include <algorithm>
#include <new>
#include <utility>

namespace penstock {

Loader::Loader(LoaderOptions options)
    : job_(options.job), share_(options.share), owner_(getpid()), forks_(fork_count()) {
  job_->cursor().check(share_);
  prefetch_ = std::make_unique<Prefetch>(std::move(options));
  prefetch_->check_sizes(*job_);
  begin();
}

Loader::~Loader() {
  // A forked child has the engine's memory but none of its threads: nothing can be joined, no mutex be trusted.
  if (is_forked()) static_cast<void>(prefetch_.release());
}

bool Loader::is_forked() const noexcept {
  return fork_count() != forks_;
}

void Loader::check_owner() const {
  if (is_forked()) {
    raise(ErrorKind::InvalidArgument,
          "this loader was made in process {} and has no threads in its forked child {}: make a loader there, or start "
          "the child with spawn",
          owner_, getpid());
  }
}

void Loader::check_process() const {
  check_owner();
  if (closed_) raise(ErrorKind::InvalidArgument, "this loader is closed: make another one");
}

void Loader::begin() {
  const Epochs& epochs = job_->cursor().epochs();
  const std::uint64_t run_end = job_->cursor().run_end();
  for_end_ = run_end;
  if (job_->cursor().options().per_epoch)
    for_end_ = std::min(run_end, epochs.begin(position_) + epochs.size(position_));
  ended_ = false;
}

std::shared_ptr<Batch> Loader::poll() {
  check_process();
  if (late_error_) std::rethrow_exception(std::exchange(late_error_, nullptr));
  ended_ = position_ >= for_end_;
  if (ended_) return nullptr;
  prefetch_->plan();
  if (const std::exception_ptr change = prefetch_->take_change()) {
    restart();  // what was read ahead may be of the file as it is now
    std::rethrow_exception(change);
  }
  const Batch* next = prefetch_->front();
  if (next == nullptr && job_->plan(position_, share_)) {
    if (prefetch_->expects_memory()) return nullptr;
    prefetch_->plan();  // threads may have let go of what was dropped since
    next = prefetch_->front();
    if (next == nullptr) prefetch_->raise_out_of_memory();
  }
  // Nothing but skips or a dropped tail was left, or this epoch had no further batch.
  if (next == nullptr || next->plan.position >= for_end_) {
    if (next == nullptr) job_->cursor().check_over(position_);
    position_ = for_end_;
    ended_ = true;
    return nullptr;
  }
  switch (prefetch_->settle()) {
    case Batch::Phase::Ready: return deliver();
    case Batch::Phase::Failed: {
      const std::shared_ptr<Batch> failed = prefetch_->take();
      restart();
      // Noted since it was asked for above, perhaps by this batch: the same change is no further error.
      if (const std::exception_ptr change = prefetch_->take_change()) std::rethrow_exception(change);
      rethrow(*failed);
    }
    default: return nullptr;
  }
}

// A thread without memory has none for words, so those are made here.
void Loader::rethrow(Batch& failed) {
  const std::exception_ptr error = std::exchange(failed.error, nullptr);  // it ends on this thread
  try {
    std::rethrow_exception(error);
  } catch (const std::bad_alloc&) {
    raise_no_memory(failed);
  }
}

std::shared_ptr<Batch> Loader::deliver() {
  std::shared_ptr<Batch> batch = prefetch_->take();
  position_ = batch->plan.end;
  stalled_ = false;
  prefetch_->counters().batches.add(1);
  prefetch_->counters().observations.add(batch->plan.valid);
  try {
    prefetch_->plan();               // the engine goes on while the caller works with this batch
  } catch (const std::bad_alloc&) {  // the next poll() plans that batch again
  } catch (const Error&) {
  } catch (...) {
    late_error_ = std::current_exception();  // not of memory; this batch is not lost
  }
  return batch;
}

void Loader::wait(std::chrono::nanoseconds patience) {
  const auto began = sync::Clock::now();
  prefetch_->wait(patience);
  const std::chrono::nanoseconds waited = sync::Clock::now() - began;
  Counters& counters = prefetch_->counters();
  if (!std::exchange(stalled_, true)) counters.stalls.add(1);
  counters.stall_ns.add(static_cast<std::uint64_t>(waited.count()));
}

Metrics Loader::metrics() const {
  check_owner();
  return prefetch_->metrics();
}

void Loader::restart() {
  late_error_ = nullptr;
  stalled_ = false;
  prefetch_->restart(job_, position_);
}

void Loader::move_to(std::uint64_t position) {
  position_ = position;
  restart();
  begin();
}

void Loader::seek(std::uint64_t position) {
  if (is_forked()) check_process();
  Job::check_position(position);
  move_to(position);
}

Resume Loader::load(const State& state, OnMismatch on_mismatch) {
  if (is_forked()) check_process();
  return resume(job_->load(state, on_mismatch));
}

Resume Loader::resume(Resume resume) {
  if (is_forked()) check_process();
  if (resume.job) job_ = resume.job;
  move_to(resume.position);
  return resume;
}

std::vector<RowChoice::Place> Loader::row_places(const Job& job, std::uint64_t position) const {
  const std::optional<BatchPlan> plan = job.plan(position, share_);
  if (!plan) return {};
  if (prefetch_->rows().may_wait()) check_owner();
  return prefetch_->rows().places(job, *plan);
}

std::optional<std::uint64_t> Loader::tail_rows() const {
  const std::optional<BatchPlan> last = job_->cursor().last(position_, share_);
  return last ? std::optional(last->valid) : std::nullopt;
}

std::uint64_t Loader::batch_rows() const {
  return penstock::batch_rows(job_->cursor().batch_size_at(position_), share_);
}

void Loader::set_global_batch_size(std::uint64_t size) {
  check_process();
  auto changed = std::make_shared<const Job>(job_->with_batch_size(position_, size));
  changed->cursor().check(share_);
  prefetch_->check_sizes(*changed);
  job_ = std::move(changed);
  restart();
}

std::uint64_t Loader::set_weights(std::uint64_t position, std::vector<std::uint64_t> weights) {
  check_process();
  if (position < position_) {
    raise(ErrorKind::InvalidArgument,
          "weights from position {} on: the loader has given batches up to position {}, which stay as they were: leave "
          "at= out, or give a position from there on",
          with_commas(position), with_commas(position_));
  }
  const std::uint64_t end = job_->cursor().run_end();
  if (job_->order().steering() && (position >= end || job_->order().change_begin(position) >= end)) return position;
  auto changed = std::make_shared<const Job>(job_->with_weights(position, std::move(weights)));
  job_ = std::move(changed);
  for_end_ = job_->cursor().run_end();  // a mixture's, which its caps may have moved
  const std::uint64_t begin = job_->order().change_begin(position);
  late_error_ = nullptr;
  stalled_ = false;
  prefetch_->change(job_, position_, begin);
  return begin;
}

void Loader::close() {
  if (is_forked()) return;
  closed_ = true;
  prefetch_->stop();
}

}  // namespace penstock
