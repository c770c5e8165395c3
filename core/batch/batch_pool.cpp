#include "core/batch/batch_pool.h"

#include "core/base/fork_count.h"

#include <algorithm>

namespace penstock {

BatchPool::BatchPool(std::size_t max_free) : max_free_(max_free), forks_(fork_count()) {
  free_.reserve(max_free);
}

std::shared_ptr<BatchPool> BatchPool::make(std::size_t max_free) {
  return std::shared_ptr<BatchPool>(new BatchPool(max_free));
}

std::shared_ptr<Batch> BatchPool::take() {
  std::unique_ptr<Batch> batch;
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      batch = std::move(free_.back());
      free_.pop_back();
      ++usage_.batches;
    }
  }
  if (!batch) {
    batch = std::make_unique<Batch>();
    const std::lock_guard lock(mutex_);
    ++usage_.batches;
  }
  batch->phase = Batch::Phase::Planned;
  batch->claimed = 0;
  batch->left = 0;
  batch->cancelled = false;
  batch->budget.reset();
  batch->error = nullptr;
  batch->error_row = UINT64_MAX;
  // Counted before: where there is no memory for the pointer's count, give() takes the batch back.
  return {batch.release(), [pool = shared_from_this()](Batch* done) { pool->give(done); }};
}

void BatchPool::account(Batch& batch, std::uint64_t at_least) {
  const std::uint64_t bytes = std::max(batch.held_bytes(), at_least);
  const std::lock_guard lock(mutex_);
  usage_.bytes += bytes - batch.accounted_bytes;
  batch.accounted_bytes = bytes;
}

BatchPool::Usage BatchPool::usage() const {
  if (fork_count() != forks_) return usage_;  // a child's only thread
  const std::lock_guard lock(mutex_);
  return usage_;
}

void BatchPool::give(Batch* batch) noexcept {
  if (fork_count() != forks_) return;
  batch->slab.release_lent();
  batch->fetched.clear();
  batch->fetches.clear();
  batch->starts.clear();  // lengths that are known are those of the next batch
  batch->error = nullptr;
  batch->job = nullptr;
  std::unique_ptr<Batch> done(batch);
  const std::lock_guard lock(mutex_);
  --usage_.batches;
  usage_.bytes -= batch->accounted_bytes;
  batch->accounted_bytes = 0;
  if (free_.size() < max_free_) free_.push_back(std::move(done));  // else freed, after the lock
}

}  // namespace penstock
