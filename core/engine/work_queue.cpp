#include "core/engine/work_queue.h"
#include "core/engine/batch_work.h"

#include <algorithm>
#include <new>
#include <utility>

namespace penstock {
namespace {

// Bytes of arrays that the consumer makes at once, which takes a fraction of a millisecond.
constexpr std::uint64_t kMostConsumerBytes = 512 << 10;

bool can_claim(const Batch& batch, Claimant by) {
  const bool has_rows = batch.phase == Batch::Phase::Measuring || batch.phase == Batch::Phase::Reading;
  const bool has_unclaimed = has_rows && batch.claimed < batch.plan.valid;
  const bool is_planned = batch.phase == Batch::Phase::Planned;
  const bool is_ragged = batch.format->shape.ragged;
  if (by == Claimant::Thread) return is_planned || has_unclaimed;
  if (batch.shares_fetches) return has_unclaimed;  // to plan a stretch would take it too long
  return !is_ragged && (has_unclaimed || (is_planned && !batch.picks_may_wait));
}

}  // namespace

void WorkQueue::push(std::shared_ptr<Batch> batch) {
  batches_.push_back(std::move(batch));
  ++unfinished_;
}

bool WorkQueue::has_work() const {
  return !given_back_.empty() || !stretches_.empty() ||
         std::any_of(batches_.begin(), batches_.end(),
                     [](const auto& batch) { return can_claim(*batch, Claimant::Thread); });
}

// Makes room so that give_back() cannot fail: it has no caller to report to.
bool WorkQueue::can_give_back(std::uint64_t rows) noexcept {
  try {
    given_back_.reserve(given_back_.size() + rows);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

bool WorkQueue::claim(Claimant by, std::uint64_t rows, Claim& claim) {
  if (by == Claimant::Thread && !given_back_.empty()) {
    GivenBack& back = given_back_.front();
    claim = {std::move(back.batch), by, false, RowReader::Part::Whole, back.first, back.last, nullptr, nullptr};
    given_back_.erase(given_back_.begin());
    return true;
  }
  const auto at =
      std::find_if(batches_.begin(), batches_.end(), [by](const auto& batch) { return can_claim(*batch, by); });
  if (at != batches_.end()) {
    if (by == Claimant::Consumer && !can_give_back((*at)->plan.valid)) return false;
    claim = {*at, by, (*at)->phase == Batch::Phase::Planned, RowReader::Part::Whole, 0, 0, nullptr, nullptr};
    if (claim.pick) {
      (*at)->phase = Batch::Phase::Picking;
    } else {
      claim_rows(rows, claim);
    }
    return true;
  }
  if (by == Claimant::Consumer || stretches_.empty()) return false;
  Stretch& stretch = *stretches_.front();
  claim = {nullptr, by, false, RowReader::Part::Whole, 0, 0, stretches_.front(), stretch.parts[stretch.claimed].get()};
  if (++stretch.claimed == stretch.parts.size()) stretches_.pop();
  return true;
}

// A batch leaves the queue when its last row is handed out.
void WorkQueue::claim_rows(std::uint64_t rows, Claim& claim) {
  Batch& batch = *claim.batch;
  const bool measuring = batch.phase == Batch::Phase::Measuring;
  std::uint64_t most = std::max<std::uint64_t>(rows, 1);
  if (claim.by == Claimant::Consumer) {
    const std::uint64_t row_bytes = batch.slab.bytes() / batch.plan.rows + 1;
    most = std::clamp<std::uint64_t>(kMostConsumerBytes / row_bytes, 1, most);
  }
  const std::uint64_t count = std::min(most, batch.plan.valid - batch.claimed);
  claim.part = measuring                    ? RowReader::Part::Measure
               : batch.format->shape.ragged ? RowReader::Part::AfterMeasure
                                            : RowReader::Part::Whole;
  claim.first = batch.claimed;
  claim.last = batch.claimed += count;
  if (measuring || batch.claimed < batch.plan.valid) return;
  batches_.erase(std::find(batches_.begin(), batches_.end(), claim.batch));
}

// Neighbours stay together: they may be neighbours on disk.
void WorkQueue::give_back(const std::shared_ptr<Batch>& batch, std::uint64_t row) noexcept {
  BatchWork(*batch).prepare_row(row);
  if (!given_back_.empty() && given_back_.back().batch == batch && given_back_.back().last == row) {
    ++given_back_.back().last;
  } else {
    given_back_.push_back({batch, row, row + 1});
  }
}

std::shared_ptr<Batch> WorkQueue::take_fetched() noexcept {
  for (const auto& batch : batches_) {
    if (batch->phase != Batch::Phase::Fetching || !is_fetched(*batch)) continue;
    batch->phase = Batch::Phase::Picking;
    return batch;
  }
  return nullptr;
}

bool WorkQueue::is_fetched(const Batch& batch) {
  return std::all_of(batch.fetches.begin(), batch.fetches.end(),
                     [](const auto& stretch) { return stretch->is_read(); });
}

void WorkQueue::enter(Batch& batch, Batch::Phase phase) {
  batch.claimed = 0;
  batch.left = batch.plan.valid;
  batch.phase = phase;
}

void WorkQueue::fail(Batch& batch, std::uint64_t row, const std::exception_ptr& error) {
  batch.error_row = row;
  batch.error = error;
  end(batch, Batch::Phase::Failed);
}

// One that was cancelled is no longer counted.
void WorkQueue::end(Batch& batch, Batch::Phase phase) {
  if (!batch.cancelled) --unfinished_;
  batch.phase = phase;
  const auto at =
      std::find_if(batches_.begin(), batches_.end(), [&](const auto& queued) { return queued.get() == &batch; });
  if (at != batches_.end()) batches_.erase(at);
}

void WorkQueue::cancel(std::span<const std::shared_ptr<Batch>> batches) {
  for (const auto& batch : batches) {
    if (batch->phase != Batch::Phase::Ready && batch->phase != Batch::Phase::Failed) --unfinished_;
    batch->cancelled = true;
  }
  std::erase_if(batches_, [](const auto& batch) { return batch->cancelled.load(); });
  std::erase_if(given_back_, [](const GivenBack& rows) { return rows.batch->cancelled.load(); });
}

void WorkQueue::cancel_all() {
  for (const auto& batch : batches_) batch->cancelled = true;
  for (const GivenBack& rows : given_back_) rows.batch->cancelled = true;
  batches_.clear();
  given_back_.clear();
  for (; !stretches_.empty(); stretches_.pop()) stretches_.front()->cancelled = true;
  unfinished_ = 0;
}

}  // namespace penstock
