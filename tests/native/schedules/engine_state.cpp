#include "tests/native/schedules/engine_state.h"

#include <algorithm>
#include <chrono>

namespace penstock::schedules {
namespace {

// Whether the reader's thread waits at a channel that can be woken, and has fewer requests than that wants. Where it
// has several channels it may wait for each in turn, for a millisecond at most.
bool could_take_more(RowReader& reader, const Scheduler& scheduler) {
  const auto& lanes = reader.lanes_.lanes_;
  if (reader.is_busy() || lanes.size() > 1) return false;
  for (const auto& lane : lanes) {
    if (lane->depth <= 1) return false;
    for (const auto& thread : scheduler.threads()) {
      if (thread->step.kind == Step::Kind::Collect && thread->step.object == lane->channel.get()) return true;
    }
  }
  return false;
}

}  // namespace

EngineState::EngineState(Loader& loader)
    : loader_(&loader),
      pool_(loader.prefetch_->pool_),
      bound_(loader.prefetch_->bound_),
      is_ragged_(loader.prefetch_->options_.formats->front().shape.ragged) {}

std::string EngineState::wrong_at_rest(const Scheduler& scheduler) const {
  const Looking looking;
  if (loader_ == nullptr || !loader_->prefetch_ || !loader_->prefetch_->engine_) return {};
  const Dispatch& dispatch = loader_->prefetch_->engine_->dispatch_;
  if (dispatch.awaited_ == nullptr || !dispatch.queue_.has_work()) return {};
  if (dispatch.sleepers_.all_asleep()) return "all threads sleep while there is work and the consumer waits";
  for (const Dispatch::Worker* worker : dispatch.workers_) {
    if (could_take_more(*worker->reader, scheduler)) {
      return "a thread that could take more waits for its reads while there is work and the consumer waits";
    }
  }
  const Dispatch::Time time{std::chrono::nanoseconds(scheduler.now())};
  const bool one_sleeps = dispatch.sleepers_.awake() < dispatch.sleepers_.threads_;
  if (one_sleeps && dispatch.sleepers_.awake() < dispatch.wakeups_.threads_wanted(time)) {
    return "a thread that is wanted sleeps while there is work and the consumer waits";
  }
  return {};
}

std::string EngineState::wrong_memory(std::size_t held) {
  const Looking looking;
  if (loader_ == nullptr) return {};
  // The size of those that were dropped, and are still in the hands of threads, is not seen here.
  if (pool_->usage_.batches > loader_->prefetch_->planned_.size() + held) return {};
  for (const auto& batch : loader_->prefetch_->planned_) {
    largest_ = std::max(largest_, batch->accounted_bytes);
    largest_spans_ = std::max(largest_spans_, batch->held_bytes() - batch->slab.bytes());
  }
  largest_ = std::max(largest_, bound_->largest_batch());
  const std::uint64_t batches = pool_->usage_.bytes;
  const std::uint64_t limit = bound_->limit(largest_);
  // Known only when batches that are planned have been read: lengths of documents, and what lies beside the records.
  const std::uint64_t unknown = bound_->batches_ * (is_ragged_ ? largest_ : largest_spans_);
  if (batches > limit + unknown) {
    return "batches hold " + std::to_string(batches) + " bytes of " + std::to_string(limit);
  }
  return {};
}

std::string EngineState::left_over() const {
  const Looking looking;
  const BatchPool::Usage usage = pool_->usage_;
  if (usage.batches == 0 && usage.bytes == 0 && bound_->fetched_ == 0 && bound_->spare_ == 0) return {};
  return std::to_string(usage.batches) + " batches, " + std::to_string(usage.bytes) + " bytes, " +
         std::to_string(bound_->fetched_) + " of fetches, " + std::to_string(bound_->spare_) + " spare ones";
}

void EngineState::change(std::uint64_t same) const {
  loader_->late_error_ = nullptr;
  loader_->stalled_ = false;
  loader_->prefetch_->change(loader_->job_, loader_->position_, same);
}

}  // namespace penstock::schedules
