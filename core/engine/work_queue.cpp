#include "core/engine/work_queue.h"

#include <algorithm>
#include <utility>

namespace penstock {
namespace {

// A thread takes a few rows at once so that neighbours on disk can be read together and the mutex is taken rarely, but
// leaves rows for the others.
constexpr std::uint64_t kMostRows = 16;
// Bytes of arrays that the consumer makes at once, which takes a fraction of a millisecond.
constexpr std::uint64_t kMostConsumerBytes = 512 << 10;

bool can_claim(const Batch& batch, Claimant by) {
  if (by == Claimant::Consumer && batch.format->shape.ragged) return false;
  if (batch.phase == Batch::Phase::Planned) return true;
  const bool has_rows = batch.phase == Batch::Phase::Measuring || batch.phase == Batch::Phase::Reading;
  return has_rows && batch.claimed < batch.plan.valid;
}

}  // namespace

bool WorkQueue::has_work() const {
  return !given_back_.empty() || std::any_of(batches_.begin(), batches_.end(),
                                             [](const auto& batch) { return can_claim(*batch, Claimant::Thread); });
}

bool WorkQueue::claim(Claimant by, unsigned shares, Claim& claim) {
  if (by == Claimant::Thread && !given_back_.empty()) {
    GivenBack& rows = given_back_.front();
    claim = {std::move(rows.batch), by, false, RowRunner::Part::Whole, rows.first, rows.last};
    given_back_.erase(given_back_.begin());
    return true;
  }
  // So that give_back() cannot fail, which nobody could be told.
  if (by == Claimant::Consumer) given_back_.reserve(given_back_.size() + kMostRows);
  const auto at =
      std::find_if(batches_.begin(), batches_.end(), [by](const auto& batch) { return can_claim(*batch, by); });
  if (at == batches_.end()) return false;
  claim = {*at, by, (*at)->phase == Batch::Phase::Planned, RowRunner::Part::Whole, 0, 0};
  if (claim.pick) {
    (*at)->phase = Batch::Phase::Picking;
  } else {
    claim_rows(shares, claim);
  }
  return true;
}

// A batch leaves the queue when its last row is handed out.
void WorkQueue::claim_rows(unsigned shares, Claim& claim) {
  Batch& batch = *claim.batch;
  const bool measuring = batch.phase == Batch::Phase::Measuring;
  std::uint64_t most = std::min((batch.plan.valid + shares - 1) / shares, kMostRows);
  if (claim.by == Claimant::Consumer) {
    const std::uint64_t row_bytes = batch.slab.bytes() / batch.plan.rows + 1;
    most = std::clamp<std::uint64_t>(kMostConsumerBytes / row_bytes, 1, most);
  }
  const std::uint64_t count = std::min(most, batch.plan.valid - batch.claimed);
  claim.part = measuring                    ? RowRunner::Part::Measure
               : batch.format->shape.ragged ? RowRunner::Part::AfterMeasure
                                            : RowRunner::Part::Whole;
  claim.first = batch.claimed;
  claim.last = batch.claimed += count;
  if (measuring || batch.claimed < batch.plan.valid) return;
  batches_.erase(std::find(batches_.begin(), batches_.end(), claim.batch));
}

// Neighbours stay together: they may be neighbours on disk.
void WorkQueue::give_back(const std::shared_ptr<Batch>& batch, std::uint64_t row) noexcept {
  batch->prepare_row(row);
  if (!given_back_.empty() && given_back_.back().batch == batch && given_back_.back().last == row) {
    ++given_back_.back().last;
  } else {
    given_back_.push_back({batch, row, row + 1});
  }
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

void WorkQueue::end(Batch& batch, Batch::Phase phase) {
  batch.phase = phase;
  const auto at =
      std::find_if(batches_.begin(), batches_.end(), [&](const auto& queued) { return queued.get() == &batch; });
  if (at != batches_.end()) batches_.erase(at);
}

void WorkQueue::cancel_all() {
  for (const auto& batch : batches_) batch->cancelled = true;
  for (const GivenBack& rows : given_back_) rows.batch->cancelled = true;
  batches_.clear();
  given_back_.clear();
}

}  // namespace penstock
