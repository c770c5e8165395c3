// Assembly: how claimed work is done: rows are read, or taken from fetches, and batches made of them.
//
// A batch goes Planned -> Picking (one thread asks the job which observations it consists of) -> if its rows share
// fetches (core/engine/fetch.h) Fetching, until those are read -> for ragged rows Measuring (their lengths), then
// NeedsMemory if the memory is lent by the consumer -> Reading -> Ready or Failed. Any thread, each with its own
// RowReader; what threads agree on is Dispatch's.
#pragma once

#include "core/base/sync.h"
#include "core/batch/batch.h"
#include "core/batch/batch_pool.h"
#include "core/engine/dispatch.h"
#include "core/engine/fetch.h"
#include "core/engine/hand_over.h"
#include "core/engine/memory_bound.h"
#include "core/engine/row_choice.h"
#include "core/engine/row_reader.h"
#include "core/job/job.h"

#include <cstdint>
#include <exception>
#include <memory>
#include <span>

namespace penstock {

class Assembly {
 public:
  /// `pool` is told what batches hold, `bound` what fetches hold. Where the consumer `lends` memory, ragged batches
  /// wait in NeedsMemory. `hand_over` finishes batches, if it is there.
  Assembly(Dispatch& dispatch, FetchPlanner planner, std::shared_ptr<const RowChoice> rows,
           std::shared_ptr<BatchPool> pool, bool lends, std::shared_ptr<HandOver> hand_over = nullptr);

  /// Does what was claimed, with the reader of the calling thread, which tells row_done() of the rows.
  void run(RowReader& reader, Claim& claim);
  /// A row has ended, in whatever phase.
  void row_done(const std::shared_ptr<Batch>& batch, std::uint64_t row, const std::exception_ptr& error);

  // --- the consumer's

  /// Goes on with a batch in NeedsMemory, whose slab is large enough now.
  void lend(Batch& batch);
  /// Fetches are planned from `position` of `job` on.
  void restart_fetches(std::shared_ptr<const Job> job, std::uint64_t position);
  /// Lets memory go that no fetch uses now.
  void drop_spares() { planner_.drop_spares(); }
  /// Forgets these batches, whose rows no fetches have, and cancels them. Rows under way end in the background.
  void cancel(std::span<const std::shared_ptr<Batch>> batches);
  /// Forgets batches and fetches. Rows under way end in the background.
  void cancel_all();

 private:
  void pick(Claim& claim);
  void prepare(Batch& batch);
  void read_part(RowReader& reader, const Claim& claim);
  void part_ended(RowReader& reader, const std::shared_ptr<Stretch>& stretch);
  void plan_ahead();
  void fetched(const std::shared_ptr<Batch>& batch);
  void adopt(const std::shared_ptr<Batch>& batch, std::uint64_t row);
  void phase_done(const std::shared_ptr<Batch>& batch);
  void end_measuring(Batch& batch) const;

  Dispatch& dispatch_;
  const std::shared_ptr<const RowChoice> rows_;
  const std::shared_ptr<BatchPool> pool_;
  const bool lends_;
  const std::shared_ptr<HandOver> hand_over_;  // null: a batch is ready when its rows are
  sync::Mutex planner_mutex_;
  FetchPlanner planner_;  // by planner_mutex_, but for drop_spares()
};

}  // namespace penstock
