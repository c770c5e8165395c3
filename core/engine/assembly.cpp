#include "core/engine/assembly.h"

#include "core/base/error.h"
#include "core/engine/batch_memory.h"
#include "core/engine/batch_work.h"

#include <utility>
#include <vector>

namespace penstock {

Assembly::Assembly(Dispatch& dispatch, FetchPlanner planner, std::shared_ptr<const RowChoice> rows,
                   std::shared_ptr<BatchPool> pool, bool lends, std::shared_ptr<HandOver> hand_over)
    : dispatch_(dispatch),
      rows_(std::move(rows)),
      pool_(std::move(pool)),
      lends_(lends),
      hand_over_(std::move(hand_over)),
      planner_(std::move(planner)) {}

void Assembly::run(RowReader& reader, Claim& claim) {
  if (claim.stretch) return read_part(reader, claim);
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
        row_done(claim.batch, row, present_error());
      }
    }
  }
}

// --- which observations

// Asks the job, and goes on with the first rows.
void Assembly::pick(Claim& claim) {
  Batch& batch = *claim.batch;
  std::exception_ptr error;
  std::vector<std::shared_ptr<Stretch>> planned;
  try {
    prepare(batch);
    if (batch.shares_fetches) {
      const std::lock_guard lock(planner_mutex_);
      if (!batch.cancelled) planner_.give_rows(batch, planned);
    }
  } catch (...) {
    error = present_error();
  }
  switch (dispatch_.picked(claim, std::move(planned), error)) {
    case Dispatch::Picked::Nothing: return phase_done(claim.batch);
    case Dispatch::Picked::Fetched: return fetched(claim.batch);
    case Dispatch::Picked::Rows:
    case Dispatch::Picked::Waits: break;
  }
}

void Assembly::prepare(Batch& batch) {
  if (batch.shares_fetches && rows_->may_wait()) {
    const std::lock_guard lock(planner_mutex_);
    if (batch.cancelled) throw CostsCancelled();
    planner_.choose(batch);
  } else {
    rows_->choose(*batch.job, batch.plan, batch.positions, batch.picks, batch.cancelled);
  }
  BatchWork(batch).prepare_rows();
  if (!batch.format->shape.ragged) BatchWork(batch).place();
}

// --- fetches

void Assembly::restart_fetches(std::shared_ptr<const Job> job, std::uint64_t position) {
  const std::lock_guard lock(planner_mutex_);
  planner_.restart(std::move(job), position);
}

void Assembly::cancel(std::span<const std::shared_ptr<Batch>> batches) {
  dispatch_.cancel(batches);
  if (hand_over_) hand_over_->forget_cancelled();
}

void Assembly::cancel_all() {
  planner_.interrupt();  // the thread that holds the mutex may be waiting for reads
  const std::lock_guard lock(planner_mutex_);
  // Batches before fetches: rows of a cancelled fetch end without their bytes, and no batch may take them then.
  dispatch_.cancel_all();
  if (hand_over_) hand_over_->cancel_all();
  planner_.stop();
}

void Assembly::read_part(RowReader& reader, const Claim& claim) {
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
                          .budget = &stretch->budget,
                          .place = place,
                          .done = [this, &reader, stretch, &part] {
                            stretch->account(part);
                            part_ended(reader, stretch);
                          }});
  } catch (...) {
    const std::exception_ptr error = present_error();
    for (Row& row : part.rows) row.error = error;
    part_ended(reader, stretch);
  }
}

// The batches that waited for it go on. The last part plans the stretch after it, if memory allows.
void Assembly::part_ended(RowReader& reader, const std::shared_ptr<Stretch>& stretch) {
  if (!dispatch_.part_ended(*stretch)) return;
  while (const std::shared_ptr<Batch> batch = dispatch_.take_fetched()) fetched(batch);
  if (stretch->cancelled) return;
  dispatch_.leave_work(reader);
  plan_ahead();
  reader.wake();  // to look for work before it waits for reads
}

void Assembly::plan_ahead() {
  try {
    const std::lock_guard lock(planner_mutex_);
    while (std::shared_ptr<Stretch> ahead = planner_.plan_ahead()) {
      if (!ahead->parts.empty()) dispatch_.push(std::move(ahead));
    }
  } catch (...) {  // the batch that needs it plans it again, and fails with the error
  }
}

// All of the batch's rows have been read, or failed; it is in phase Picking.
void Assembly::fetched(const std::shared_ptr<Batch>& batch) {
  const bool ragged = batch->format->shape.ragged;
  for (std::uint64_t i = 0; i < batch->plan.valid; ++i) {
    if (batch->fetched[i]->error && i < batch->error_row) {
      batch->error_row = i;
      batch->error = batch->fetched[i]->error;
    }
    if (ragged) batch->rows[i].length = batch->fetched[i]->length;
  }
  if (!ragged && !batch->error) return dispatch_.enter(*batch, Batch::Phase::Reading);
  dispatch_.lengths_known(*batch);
  phase_done(batch);
}

void Assembly::adopt(const std::shared_ptr<Batch>& batch, std::uint64_t row) {
  std::exception_ptr error;
  try {
    BatchWork(*batch).adopt_row(row);
    BatchWork(*batch).finish_row(row);
  } catch (...) {
    error = present_error();
  }
  row_done(batch, row, error);
}

// --- where phases end

void Assembly::row_done(const std::shared_ptr<Batch>& batch, std::uint64_t row, const std::exception_ptr& error) {
  if (error) dispatch_.note_error(*batch, row, error);
  if (batch->left.fetch_sub(1) == 1) phase_done(batch);
}

// No mutex for what is read here: the last row has ended, so no other thread changes the batch, and the `left` that
// each row counts down orders what they wrote before this.
void Assembly::phase_done(const std::shared_ptr<Batch>& batch) {
  const bool measured = batch->phase == Batch::Phase::Measuring;
  const bool is_whole = !measured || (batch->plan.valid == 0 && !lends_);
  std::exception_ptr error;
  try {
    if (measured) end_measuring(*batch);
    if (is_whole && !batch->error && !batch->cancelled) BatchWork(*batch).finish();
    if (!measured || batch->error) {
      batch->fetched.clear();
      batch->fetches.clear();
    }
    pool_->account(*batch);
    if (is_whole && hand_over_ && batch->plan.valid > 0 && !batch->error && !batch->cancelled) {
      return hand_over_->put(batch);
    }
  } catch (...) {
    error = present_error();
  }
  dispatch_.enter(*batch,
                  is_whole ? Batch::Phase::Ready
                  : lends_ ? Batch::Phase::NeedsMemory
                           : Batch::Phase::Reading,
                  error);
}

void Assembly::end_measuring(Batch& batch) const {
  if (batch.error) return;
  BatchWork(batch).measure();
  const std::uint64_t bytes = bounded_bytes(batch);
  if (lends_) return;
  batch.slab.ensure(bytes);
  BatchWork(batch).place();
}

void Assembly::lend(Batch& batch) {
  BatchWork(batch).place();
  if (batch.plan.valid > 0) return dispatch_.enter(batch, Batch::Phase::Reading);
  BatchWork(batch).finish();  // nothing is read
  dispatch_.enter(batch, Batch::Phase::Ready);
}

}  // namespace penstock
