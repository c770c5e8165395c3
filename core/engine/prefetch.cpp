#include "core/engine/prefetch.h"

#include "core/base/error.h"
#include "core/base/sync.h"
#include "core/engine/batch_memory.h"
#include "core/engine/batch_sizes.h"

#include <algorithm>
#include <new>
#include <optional>
#include <utility>

namespace penstock {
namespace {

// Of max_bytes, what sources may keep of their files: the indexes of 13 billion tokens in documents of 800 are as
// large.
constexpr std::uint64_t kMostKeptBytes = 256U << 20;
constexpr std::uint64_t kMostKeptShare = 4;  // and no more than one part in so many
// Batches that one call of plan() adds: the caller waits for it, and is deaf to signals meanwhile.
constexpr std::size_t kMostAtOnce = 1024;

std::uint64_t kept_at_most(const BatchFormats& formats, std::uint64_t max_bytes, bool balances) {
  const std::uint64_t each = std::min(max_bytes / kMostKeptShare, kMostKeptBytes) / formats.size();
  std::uint64_t bytes = 0;
  for (const BatchFormat& format : formats) {
    const SourceInfo& info = format.source->info();
    // Fixed rows without spans are read without a look at those files; documents never are.
    const bool looks = info.keeps && (has_spans(format.wanted) || format.shape.ragged || balances);
    const std::uint64_t index = looks ? info.keeps->grant(each) : 0;
    const bool has_values = info.keeps_values && has(format.wanted, Parts::Values);
    bytes += index + (has_values ? info.keeps_values->grant(each - std::min(each, index)) : 0);
  }
  return bytes;
}

// Call in a handler: swallows the errors that say that there is no memory for a batch; rethrows all others.
void put_off() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
  } catch (const Error&) {
  }
}

LoaderOptions at_least_one(LoaderOptions options) {
  options.prefetch = std::max(options.prefetch, 1U);
  options.threads = std::max(options.threads, 1U);
  return options;
}

}  // namespace

// Beside `prefetch` planned batches the caller holds one and gets the next.
Prefetch::Prefetch(LoaderOptions options)
    : options_(at_least_one(std::move(options))),
      job_(options_.job),
      kept_bytes_(kept_at_most(*options_.formats, options_.max_bytes, options_.balance.has_value())),
      bound_(std::make_shared<MemoryBound>(options_.max_bytes, kept_bytes_, options_.prefetch + 2)),
      pool_(BatchPool::make(options_.prefetch + 2)),
      counters_(std::make_shared<Counters>(options_.balance ? 2 * options_.threads : options_.threads)),
      rows_(make_choice()) {}

void Prefetch::check_sizes(const Job& job) const {
  check_batches(job, options_.share, *options_.formats, bound_->most_by_file(), options_.balance.has_value());
}

// Costs are asked for by the engine's threads, whose counters come first.
std::shared_ptr<const RowChoice> Prefetch::make_choice() const {
  if (!options_.balance) return std::make_shared<const RowChoice>(options_.share);
  std::vector<ReadCounters*> counters;
  for (unsigned i = 0; i < options_.threads; ++i) counters.push_back(&counters_->reads[options_.threads + 1 + i]);
  std::vector<std::shared_ptr<const Source>> sources;
  for (const BatchFormat& format : *options_.formats) sources.push_back(format.source);
  auto costs = std::make_unique<const RowCosts>(sources, options_.balance->rules, options_.through,
                                                bound_->most_by_file(), std::move(counters));
  return std::make_shared<const RowChoice>(options_.share, std::move(costs));
}

Metrics Prefetch::metrics() const {
  Metrics sums;
  for (const ReadCounters& each : counters_->reads) each.add_to(sums);
  sums.batches = counters_->batches.get();
  sums.observations = counters_->observations.get();
  sums.queue_depth = counters_->queue_depth.get();
  sums.stalls = counters_->stalls.get();
  sums.stall_time = std::chrono::nanoseconds(counters_->stall_ns.get());
  sums.memory_bytes = pool_->usage().bytes + bound_->fetched();
  return sums;
}

void Prefetch::restart(std::shared_ptr<const Job> job, std::uint64_t position) {
  for (const auto& batch : planned_) batch->cancelled = true;
  if (engine_) engine_->cancel_all();
  planned_.clear();
  planned_to_ = position;
  is_short_ = false;
  job_ = std::move(job);
  if (engine_) engine_->restart(job_);
}

void Prefetch::change(std::shared_ptr<const Job> job, std::uint64_t position, std::uint64_t same) {
  const auto stays = [&](const Batch& batch) {
    const bool is_read = batch.phase == Batch::Phase::Ready || batch.phase == Batch::Phase::Failed;
    if (batch.plan.end > same || (engine_->shares_fetches() && !is_read)) return false;
    // Where the run ends decides what the last batches are.
    const std::optional<BatchPlan> plan = job->plan(batch.plan.position, options_.share);
    return plan && plan->end == batch.plan.end && plan->of_all == batch.plan.of_all;
  };
  const auto first = std::find_if_not(planned_.begin(), planned_.end(), [&](const auto& each) { return stays(*each); });
  if (first == planned_.begin()) return restart(std::move(job), position);
  const std::vector<std::shared_ptr<Batch>> dropped(first, planned_.end());
  planned_.erase(first, planned_.end());
  engine_->cancel(dropped);
  planned_to_ = planned_.back()->plan.end;
  is_short_ = false;
  job_ = std::move(job);
  engine_->restart(job_);
}

void Prefetch::stop() {
  restart(job_, planned_to_);
  if (options_.hand_over) options_.hand_over->close();
  engine_.reset();
}

void Prefetch::plan() {
  if (!engine_) {
    engine_ = std::make_unique<Engine>(EngineOptions{.formats = options_.formats,
                                                     .rows = rows_,
                                                     .through = options_.through,
                                                     .threads = options_.threads,
                                                     .cores = options_.cores,
                                                     .counters = counters_,
                                                     .hand_over = options_.hand_over,
                                                     .lends = static_cast<bool>(options_.lend)},
                                       job_, pool_, bound_);
  }
  try {
    const std::size_t most = std::min<std::size_t>(options_.prefetch, planned_.size() + kMostAtOnce);
    while (planned_.size() < most && !is_short_ && plan_one()) {
    }
  } catch (...) {
    if (planned_.empty()) throw;
    put_off();
    is_short_ = true;
  }
  engine_->top_up(planned_.size());
}

bool Prefetch::plan_one() {
  std::optional<BatchPlan> plan = job_->plan(planned_to_, options_.share);
  if (!plan) return false;
  // What a batch holds is known only once it was read; the largest so far is the estimate.
  if (!bound_->allows_batch(bound_->largest_batch(), pool_->usage().bytes)) return false;
  if (bound_->needs_spares(pool_->usage().bytes, bound_->largest_batch())) engine_->drop_spares();
  const std::uint64_t end = plan->end;
  std::shared_ptr<Batch> batch = make_batch(std::move(*plan));  // may throw, as may what follows: the batch is then
  bound_->note_batch(batch->accounted_bytes);                   // still to be planned
  planned_.push_back(batch);
  try {
    engine_->enqueue(std::move(batch));
  } catch (...) {
    planned_.pop_back();
    throw;
  }
  planned_to_ = end;
  return true;
}

std::shared_ptr<Batch> Prefetch::make_batch(BatchPlan plan) {
  const std::uint64_t at = plan.runs.empty() ? plan.position : plan.runs.front().first;  // not one that is skipped
  const std::uint32_t source = options_.formats->size() > 1 ? job_->order().source_at(at) : 0;
  std::shared_ptr<Batch> batch = pool_->take();
  batch->plan = std::move(plan);
  batch->job = job_;
  batch->formats = options_.formats;
  batch->format = &(*options_.formats)[source];
  batch->picks_may_wait = rows_->may_wait() || job_->order().may_wait();
  check_rows(*batch);
  batch->most_bytes = bound_->most_by_file();
  if (!batch->format->shape.ragged) {
    const std::uint64_t bytes = needed_bytes(*batch);
    if (options_.lend) {
      options_.lend(batch->slab, bytes);
    } else {
      ensure_slab(*batch, bytes);
    }
  }
  pool_->account(*batch, bound_->largest_batch());  // it takes as much once it is read, as those planned before it
  return batch;
}

Batch::Phase Prefetch::settle() {
  const Batch::Phase phase = engine_->wait(*planned_.front(), std::chrono::nanoseconds(0));
  if (!options_.lend || phase == Batch::Phase::Ready || phase == Batch::Phase::Failed) return phase;
  for (const auto& batch : planned_) {
    const bool is_next = batch == planned_.front();
    if (is_short_ && !is_next) break;
    if (engine_->wait(*batch, std::chrono::nanoseconds(0)) != Batch::Phase::NeedsMemory) continue;
    try {
      options_.lend(batch->slab, needed_bytes(*batch));
      pool_->account(*batch);
      engine_->lend(*batch);
    } catch (...) {
      if (is_next) throw;
      put_off();
      is_short_ = true;
    }
  }
  return phase;
}

void Prefetch::wait(std::chrono::nanoseconds patience) {
  if (!planned_.empty()) {
    engine_->wait(*planned_.front(), patience);
  } else {
    sync::sleep_for(std::min<std::chrono::nanoseconds>(patience, std::chrono::milliseconds(1)));
  }
}

std::shared_ptr<Batch> Prefetch::take() {
  std::shared_ptr<Batch> batch = std::move(planned_.front());
  planned_.pop_front();
  is_short_ = false;
  bound_->note_batch(batch->accounted_bytes);
  engine_->batch_taken();
  return batch;
}

void Prefetch::raise_out_of_memory() const {
  const BatchPool::Usage usage = pool_->usage();
  const std::uint64_t fetched = bound_->fetched();
  raise(
      ErrorKind::InvalidArgument,
      "no memory for the next batch: {} batches are held by the caller ({} bytes of at most {}{}{}); let go of some or "
      "raise max_bytes",
      usage.batches, with_commas(usage.bytes), with_commas(limit_bytes()),
      fetched > 0 ? fmt::format("; rows read ahead have {} more", with_commas(fetched)) : "",
      kept_bytes_ > 0 ? fmt::format("; metadata may have {}", with_commas(kept_bytes_)) : "");
}

}  // namespace penstock
