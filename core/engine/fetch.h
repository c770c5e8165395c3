// Fetches: which rows are read together, ahead of the batches that they belong to.
//
// The order says which positions share a fetch (Pick::fetch) and how far one goes on (Order::fetch_end). A stretch is
// all rows of this rank up to there: the fetches that are open together, of all lanes and sources. Its rows are put in
// the order of their places and cut into parts, each of which one thread reads at once (core/engine/row_group.h). When
// all parts are read, batches take their rows. What does not fit into memory is planned as a shorter stretch: more
// requests for the same rows.
#pragma once

#include "core/base/retry_budget.h"
#include "core/base/sync.h"
#include "core/batch/batch.h"
#include "core/batch/batch_pool.h"
#include "core/engine/fetch_part.h"
#include "core/engine/memory_bound.h"
#include "core/engine/row_choice.h"
#include "core/job/job.h"

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace penstock {

class Stretch {
 public:
  /// Positions from `begin` on. Counts its memory in `bound` for as long as it lives; its parts are of `spares`, and go
  /// back there.
  Stretch(std::uint64_t begin, std::shared_ptr<MemoryBound> bound, std::shared_ptr<SpareParts> spares);
  ~Stretch();
  Stretch(const Stretch&) = delete;
  Stretch& operator=(const Stretch&) = delete;

  [[nodiscard]] std::uint64_t begin() const noexcept { return begin_; }
  [[nodiscard]] std::uint64_t end() const noexcept { return end_; }
  /// The row at one of its positions.
  [[nodiscard]] Row& row(std::uint64_t position);
  [[nodiscard]] std::size_t row_count() const noexcept { return positions_.size(); }

  /// Adds the row of `pick` at `position`; positions rise.
  void add(std::uint64_t position, const Pick& pick, std::uint64_t bytes);
  /// After the last row: no position from `end` on is here. Sorts the rows and makes the parts.
  void close(std::uint64_t end, const BatchFormats& formats);

  std::vector<std::unique_ptr<FetchPart>> parts;
  sync::Atomic<bool> cancelled{false};
  RetryBudget budget{RetryBudget::Others::TryOnce};
  // By the engine's mutex:
  std::size_t claimed = 0;  // parts that threads have taken …
  std::size_t ended = 0;    // … and read, or failed to
  std::shared_ptr<Stretch> next_queued;
  [[nodiscard]] bool is_read() const noexcept { return ended == parts.size(); }
  // By the planner's:
  std::size_t given = 0;  // rows that batches have been told of

  /// Counts what the part holds now, instead of what was estimated.
  void account(FetchPart& part);
  /// What its rows were estimated to take when they were added.
  [[nodiscard]] std::uint64_t estimated_bytes() const noexcept { return estimate_; }
  /// What is counted for it in the bound, once it is closed.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  struct Member {
    Pick pick;
    std::size_t slot;     // in positions_
    std::uint64_t bytes;  // that it is estimated to take
  };

  const std::uint64_t begin_;
  std::uint64_t end_ = 0;
  const std::shared_ptr<MemoryBound> bound_;
  const std::shared_ptr<SpareParts> spares_;
  std::vector<std::uint64_t> positions_;
  std::vector<Row*> rows_;  // by slot
  std::vector<Member> members_;
  std::size_t next_slot_ = 0;  // rows are asked for in the order of their positions
  std::uint64_t estimate_ = 0;
  sync::Atomic<std::uint64_t> bytes_{0};  // counted in bound_
};

/// Stretches one behind the other, linked by Stretch::next_queued: no thread needs memory to queue one.
class StretchQueue {
 public:
  void push(std::shared_ptr<Stretch> stretch) noexcept {
    Stretch* const added = stretch.get();
    (last_ != nullptr ? last_->next_queued : first_) = std::move(stretch);
    last_ = added;
  }
  /// Not when empty().
  void pop() noexcept {
    first_ = std::move(first_->next_queued);
    if (!first_) last_ = nullptr;
  }
  [[nodiscard]] const std::shared_ptr<Stretch>& front() const noexcept { return first_; }
  [[nodiscard]] bool empty() const noexcept { return !first_; }

 private:
  std::shared_ptr<Stretch> first_;
  Stretch* last_ = nullptr;
};

/// Which rows a batch of the rank has.
struct ChosenRows {
  std::uint64_t position = 0;  // of the batch …
  std::uint64_t end = 0;       // … and where it ends
  std::vector<std::uint64_t> positions;
  std::vector<Pick> picks;
  bool given = false;  // to the batch
};

/// Plans stretches, one after the other, and tells batches where their rows are. One thread at a time.
class FetchPlanner {
 public:
  FetchPlanner(std::shared_ptr<const BatchFormats> formats, std::shared_ptr<const RowChoice> rows,
               std::shared_ptr<BatchPool> pool, std::shared_ptr<MemoryBound> bound);

  /// Plans from `position` of `job` on.
  void restart(std::shared_ptr<const Job> job, std::uint64_t position);
  /// Cancels what was planned, and plans nothing more.
  void stop();

  /// Makes whatever waits here, for reads or for the order, end soon, with CostsCancelled or PicksCancelled; until
  /// restart(). Any thread, at any time.
  void interrupt() const { *interrupted_ = true; }

  /// Sets positions and picks of a batch. Which rows it has may be known already, since it is chosen once for the
  /// stretches and the batch together. Throws as RowChoice::choose.
  void choose(Batch& batch);
  /// Points batch.fetched to the rows of the batch, whose positions are known; appends the stretches that had to be
  /// planned for it to `planned`, or the one after a stretch of which it is the first to take rows.
  void give_rows(Batch& batch, std::vector<std::shared_ptr<Stretch>>& planned);

  /// The next stretch before any batch needs it, where memory allows all of it beside what there is; null if not, or if
  /// enough is planned ahead already, or at the end of the run.
  std::shared_ptr<Stretch> plan_ahead();
  /// Lets memory go that no fetch uses now. Any thread, at any time.
  void drop_spares() const { spares_->clear(); }

 private:
  void pass_empty(std::uint64_t position);
  ChosenRows& chosen(const BatchPlan& plan, ChosenRows& scratch);
  void forget_chosen();
  struct Room {
    std::uint64_t bytes = 0;
    bool may_cut = false;      // what exceeds them is left for the next stretch …
    std::uint64_t needed = 0;  // … but not the batch at this position
  };
  struct Filling {
    Stretch& stretch;
    std::vector<std::size_t> rising = {};  // rows by position
    Pick last = {};
    bool is_rising = true;
  };
  std::shared_ptr<Stretch> plan(const Room& room);
  bool fill(Stretch& stretch, std::optional<BatchPlan>& batch, std::uint64_t& end, const Room& room);
  const ChosenRows* chosen_if_any(const BatchPlan& batch, bool may_end, ChosenRows& scratch);
  void add_rows(Filling& filling, const ChosenRows& rows, std::uint64_t begin, std::uint64_t end) const;
  [[nodiscard]] std::uint64_t row_bytes(const Pick& pick) const;
  /// The stretch that has a position; there is one.
  [[nodiscard]] const std::shared_ptr<Stretch>& find(std::uint64_t position) const;

  const std::shared_ptr<const BatchFormats> formats_;
  const std::shared_ptr<const RowChoice> rows_;
  const std::shared_ptr<BatchPool> pool_;
  const std::shared_ptr<MemoryBound> bound_;
  const std::shared_ptr<SpareParts> spares_;
  std::shared_ptr<const Job> job_;
  std::uint64_t planned_to_ = 0;                    // the first position that no stretch has
  std::optional<BatchPlan> batch_;                  // the one that has it, or begins after it
  std::deque<std::shared_ptr<Stretch>> stretches_;  // rows of which no batch has been told of
  std::deque<ChosenRows> chosen_;                   // where that took reads: until stretches and batch have them
  const std::shared_ptr<sync::Atomic<bool>> interrupted_ = std::make_shared<sync::Atomic<bool>>(false);
};

}  // namespace penstock
