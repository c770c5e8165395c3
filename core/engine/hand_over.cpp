#include "core/engine/hand_over.h"

#include <algorithm>
#include <utility>

namespace penstock {

void HandOver::open(Finish finish) {
  const std::lock_guard lock(mutex_);
  finish_ = std::move(finish);
}

void HandOver::detach() {
  const std::lock_guard lock(mutex_);
  finish_ = nullptr;
  entries_.clear();
}

void HandOver::close() {
  detach();
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  filled_.notify_all();
}

void HandOver::put(std::shared_ptr<Batch> batch) {
  {
    const std::lock_guard lock(mutex_);
    // Who cancels sets the flag before cancel_all(), so that one of the two sees the batch.
    if (!finish_ || batch->cancelled) return;
    entries_.push_back({std::move(batch)});
  }
  filled_.notify_all();  // its rows are for several
}

void HandOver::forget_cancelled() {
  const std::lock_guard lock(mutex_);
  std::erase_if(entries_, [](const Entry& entry) { return entry.batch->cancelled && entry.taken == entry.finished; });
}

// Entries of which rows are out stay until those are back, so that idle() is true.
void HandOver::cancel_all() {
  const std::lock_guard lock(mutex_);
  std::erase_if(entries_, [](const Entry& entry) { return entry.taken == entry.finished; });
  for (Entry& entry : entries_) entry.batch->cancelled = true;
}

bool HandOver::idle() const {
  const std::lock_guard lock(mutex_);
  return entries_.empty();
}

HandOver::Rows HandOver::take(std::chrono::nanoseconds patience) {
  std::unique_lock lock(mutex_);
  Entry* found = nullptr;
  const auto is_there = [&] {
    for (Entry& entry : entries_) {
      if (entry.batch->cancelled || entry.taken == entry.batch->plan.valid) continue;
      found = &entry;
      return true;
    }
    return closed_;
  };
  filled_.wait_for(lock, patience, is_there);
  if (found == nullptr || closed_) return {};
  // Small enough that takers end together, large enough that a batch is few claims.
  const std::uint64_t valid = found->batch->plan.valid;
  const std::uint64_t count = std::max<std::uint64_t>(valid / (std::uint64_t{2} * takers_), 1);
  const std::uint64_t first = found->taken;
  found->taken = std::min(valid, first + count);
  return {found->batch, first, found->taken};
}

void HandOver::give_back(Rows rows, const std::exception_ptr& error) {
  const std::lock_guard lock(mutex_);                          // finish_ must not end meanwhile
  const std::shared_ptr<Batch> batch = std::move(rows.batch);  // let go of before the mutex
  const auto at =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.batch == batch; });
  if (at == entries_.end()) return;  // closed
  at->finished += rows.last - rows.first;
  if (error && rows.first < at->error_row) {
    at->error_row = rows.first;
    at->error = error;
  }
  const bool is_cancelled = batch->cancelled;
  if (at->finished < (is_cancelled ? at->taken : batch->plan.valid)) return;
  const Entry done = std::move(*at);
  entries_.erase(at);
  if (finish_ && !is_cancelled) finish_(*done.batch, done.error);
}

bool HandOver::closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

}  // namespace penstock
