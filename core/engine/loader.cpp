#include "core/engine/loader.h"

#include "core/base/error.h"
#include "core/base/fork_count.h"

#include <unistd.h>

#include <algorithm>
#include <new>
#include <thread>
#include <utility>

namespace penstock {
namespace {

// Of max_bytes, what sources may keep of their files: the indexes of 13 billion tokens in documents of 800 are as
// large.
constexpr std::uint64_t kMostKeptBytes = 256U << 20;
constexpr std::uint64_t kMostKeptShare = 4;  // and no more than one part in so many

std::uint64_t kept_at_most(const BatchFormats& formats, std::uint64_t max_bytes) {
  const std::uint64_t each = std::min(max_bytes / kMostKeptShare, kMostKeptBytes) / formats.size();
  std::uint64_t bytes = 0;
  for (const BatchFormat& format : formats) {
    const std::shared_ptr<Allowance>& keeps = format.source->info().keeps;
    if (keeps && has_spans(format.wanted)) bytes += keeps->grant(each);
  }
  return bytes;
}

void ensure_memory(Batch& batch, std::uint64_t bytes) {
  try {
    batch.slab.ensure(bytes);
  } catch (const std::bad_alloc&) {
    raise(ErrorKind::InvalidArgument, "no memory for a batch of {} rows, {} bytes: use a smaller batch size",
          with_commas(batch.plan.rows), with_commas(bytes));
  }
}

}  // namespace

Loader::Loader(LoaderOptions options)
    : options_(std::move(options)),
      job_(options_.job),
      kept_bytes_(kept_at_most(*options_.formats, options_.max_bytes)),
      bound_(std::make_shared<MemoryBound>(options_.max_bytes, kept_bytes_, std::max(options_.prefetch, 1U) + 2)),
      owner_(getpid()),
      forks_(fork_count()) {
  job_->cursor().check(options_.share);
  options_.prefetch = std::max(options_.prefetch, 1U);
  options_.threads = std::max(options_.threads, 1U);
  pool_ = BatchPool::make(options_.prefetch + 2);
  begin();
}

Loader::~Loader() {
  if (!is_forked()) return;
  // A forked child has the engine's memory but none of its threads: nothing can be joined, no mutex be trusted.
  static_cast<void>(engine_.release());
  new std::deque<std::shared_ptr<Batch>>(std::move(planned_));
}

bool Loader::is_forked() const noexcept {
  return fork_count() != forks_;
}

void Loader::check_process() const {
  if (is_forked()) {
    raise(ErrorKind::InvalidArgument,
          "this loader was made in process {} and has no threads in its forked child {}: make a loader there, or start "
          "the child with spawn",
          owner_, getpid());
  }
  if (closed_) raise(ErrorKind::InvalidArgument, "this loader is closed: make another one");
}

void Loader::begin() {
  const std::uint64_t epoch_size = job_->cursor().options().epoch_size;
  const std::uint64_t run_end = job_->cursor().run_end();
  for_end_ = run_end;
  if (job_->cursor().options().per_epoch) for_end_ = std::min(run_end, (position_ / epoch_size + 1) * epoch_size);
  ended_ = false;
}

std::uint64_t Loader::limit_bytes() const noexcept {
  return bound_->limit(bound_->largest_batch());
}

bool Loader::has_memory_for(std::uint64_t bytes) const {
  return bound_->allows_batch(bytes, pool_->usage().bytes);
}

std::shared_ptr<Batch> Loader::make_batch(BatchPlan plan) {
  Pick first;
  const std::uint64_t at = plan.runs.empty() ? plan.position : plan.runs.front().first;  // not one that is skipped
  if (options_.formats->size() > 1) job_->order().pick(at, 1, std::span(&first, 1));
  std::shared_ptr<Batch> batch = pool_->take();
  batch->plan = std::move(plan);
  batch->formats = options_.formats;
  batch->format = &(*options_.formats)[first.source];
  if (!batch->format->shape.ragged) {
    const std::uint64_t bytes = batch->needed_bytes();
    if (options_.lend) {
      options_.lend(batch->slab, bytes);
    } else {
      ensure_memory(*batch, bytes);
    }
  }
  pool_->account(*batch);
  return batch;
}

bool Loader::plan_one() {
  std::optional<BatchPlan> plan = job_->plan(planned_to_, options_.share);
  if (!plan) return false;
  // What a batch holds is known only once it was read; the largest so far is the estimate.
  if (!has_memory_for(bound_->largest_batch())) return false;
  const std::uint64_t end = plan->end;
  planned_.push_back(make_batch(std::move(*plan)));  // may throw: the batch is then still to be planned
  planned_to_ = end;
  bound_->note_batch(planned_.back()->accounted_bytes);
  engine_->enqueue(planned_.back());
  return true;
}

void Loader::plan_ahead() {
  if (!engine_) {
    engine_ = std::make_unique<Engine>(EngineOptions{.formats = options_.formats,
                                                     .share = options_.share,
                                                     .through = options_.through,
                                                     .threads = options_.threads,
                                                     .cores = options_.cores,
                                                     .lends = static_cast<bool>(options_.lend)},
                                       job_, pool_, bound_);
  }
  while (planned_.size() < options_.prefetch && plan_one()) {
  }
  engine_->top_up(planned_.size());
}

void Loader::raise_out_of_memory() const {
  const BatchPool::Usage usage = pool_->usage();
  raise(
      ErrorKind::InvalidArgument,
      "no memory for the next batch: {} batches are held by the caller ({} bytes of at most {}{}{}); let go of some or "
      "raise max_bytes",
      usage.batches, with_commas(usage.bytes), with_commas(limit_bytes()),
      kept_bytes_ > 0 ? fmt::format(", beside {} for metadata", with_commas(kept_bytes_)) : "",
      bound_->fetched() > 0 ? fmt::format(", {} of which are rows read ahead", with_commas(bound_->fetched())) : "");
}

std::shared_ptr<Batch> Loader::poll() {
  check_process();
  if (late_error_) std::rethrow_exception(std::exchange(late_error_, nullptr));
  ended_ = false;
  if (position_ >= for_end_) {
    ended_ = true;
    return nullptr;
  }
  plan_ahead();
  if (planned_.empty()) {
    if (job_->plan(position_, options_.share)) {
      if (!engine_->idle()) return nullptr;  // what threads still hold comes back when they let go
      raise_out_of_memory();
    }
    position_ = planned_to_ = for_end_;  // nothing but skips or a dropped tail was left
    ended_ = true;
    return nullptr;
  }
  const std::shared_ptr<Batch>& next = planned_.front();
  if (next->plan.position >= for_end_) {  // this epoch had no further batch
    position_ = for_end_;
    ended_ = true;
    return nullptr;
  }
  switch (engine_->wait(*next, std::chrono::nanoseconds(0))) {
    case Batch::Phase::Ready: return deliver();
    case Batch::Phase::Failed: {
      const std::exception_ptr error = std::exchange(next->error, nullptr);  // it ends on this thread
      drop_planned();
      std::rethrow_exception(error);
    }
    default: break;
  }
  if (options_.lend) {
    for (const auto& batch : planned_) {
      if (engine_->wait(*batch, std::chrono::nanoseconds(0)) != Batch::Phase::NeedsMemory) continue;
      options_.lend(batch->slab, batch->needed_bytes());
      pool_->account(*batch);
      engine_->lend(*batch);
    }
  }
  return nullptr;
}

std::shared_ptr<Batch> Loader::deliver() {
  std::shared_ptr<Batch> batch = std::move(planned_.front());
  planned_.pop_front();
  position_ = batch->plan.end;
  bound_->note_batch(batch->accounted_bytes);
  engine_->batch_taken();
  try {
    plan_ahead();  // the engine goes on while the caller works with this batch
  } catch (...) {
    late_error_ = std::current_exception();  // of the memory for a later batch: this one is not lost
  }
  return batch;
}

void Loader::wait(std::chrono::nanoseconds patience) {
  if (!planned_.empty()) {
    engine_->wait(*planned_.front(), patience);
  } else {
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(patience, std::chrono::milliseconds(1)));
  }
}

void Loader::drop_planned() {
  for (const auto& batch : planned_) batch->cancelled = true;
  if (engine_) engine_->cancel_all();
  late_error_ = nullptr;
  planned_.clear();
  planned_to_ = position_;
}

void Loader::move_to(std::uint64_t position) {
  position_ = position;
  drop_planned();
  begin();
}

void Loader::seek(std::uint64_t position) {
  if (is_forked()) check_process();
  Job::check_position(position);
  move_to(position);
}

Resume Loader::load(const State& state, OnMismatch on_mismatch) {
  if (is_forked()) check_process();
  Resume resume = job_->load(state, on_mismatch);
  move_to(resume.position);
  return resume;
}

void Loader::set_global_batch_size(std::uint64_t size) {
  check_process();
  auto changed = std::make_shared<const Job>(job_->with_batch_size(position_, size));
  changed->cursor().check(options_.share);
  job_ = std::move(changed);
  drop_planned();
  if (engine_) engine_->restart(job_);
}

void Loader::close() {
  if (is_forked()) return;
  closed_ = true;
  drop_planned();
  engine_.reset();
}

}  // namespace penstock
