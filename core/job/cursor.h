// Cursor: the arithmetic from (position, batch size, tail rule, skips) to the positions of one rank's next batch.
//
// Pure: no order, no files, no threads; usable without the engine. Immutable but for set_batch_size(). The next global
// batch is the next G positions that no skip range leaves out; rank r of R takes the i-th of them where i mod R = r. It
// never crosses the end of a stage, of an epoch if `per_epoch`, or of the run. All ranks have batches of as many rows,
// G / R rounded up, with Tail::Short no more than what is left / R rounded up; what the observations do not fill is
// padding.
#pragma once

#include "core/job/epochs.h"
#include "core/job/position.h"
#include "core/job/share.h"

#include <boost/container/small_vector.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace penstock {

/// Rows of a rank's batch are fewer.
inline constexpr std::uint64_t kMostBatchRows = std::uint64_t{1} << 31;

/// The treatment of a last batch that is not full: padded to G, left out, or of as many rows as are left for each rank.
enum class Tail { Pad, Drop, Short };

/// Half-open ranges of positions in order, joined where they touch, without empty ones. Throws InvalidArgument for one
/// that ends before it begins.
std::vector<std::pair<std::uint64_t, std::uint64_t>> merge_skips(
    std::vector<std::pair<std::uint64_t, std::uint64_t>> skip);

struct CursorOptions {
  std::uint64_t epoch_size = 0;         // N
  EpochSizes grown = {};                // where it is another from a position on, see Epochs
  std::optional<std::uint64_t> epochs;  // of the run; none: endless
  bool per_epoch = false;               // the tail rule applies at each epoch's end
  Tail tail = Tail::Pad;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> skip;      // [begin, end) positions, any order, may overlap
  std::vector<std::pair<std::uint64_t, std::uint64_t>> schedule;  // (position, global batch size); the first at 0
  std::function<std::uint64_t(std::uint64_t)> stage_end;          // Order::end; empty: no stages
  Uneven uneven = Uneven::Refuse;
};

/// Positions first, first + stride, … (count of them).
struct PositionRun {
  std::uint64_t first = 0;
  std::uint64_t stride = 1;
  std::uint64_t count = 0;
};

/// One rank's part of one global batch.
struct BatchPlan {
  std::uint64_t position = 0;  // the state before it (past epochs and stages that hold no batch)
  std::uint64_t end = 0;       // the state after it (past a dropped or wholly skipped remainder)
  std::uint64_t rows = 0;      // rows of this rank, padding included: batch_rows()
  std::uint64_t valid = 0;     // rows that are observations: the sum of the runs' counts
  std::uint64_t of_all = 0;    // observations of all ranks together
  Share share;                 // whose part it is
  boost::container::small_vector<PositionRun, 2> runs;
};

class Cursor {
 public:
  /// Throws InvalidArgument: what Epochs refuses, a batch size of 0, a schedule that does not begin at 0 or is not
  /// increasing, a skip with end < begin, an end or a batch size beyond 2^63.
  explicit Cursor(CursorOptions options);

  /// Throws InvalidArgument if rank >= world size, or there are no micro-batches; if a batch size of the schedule is
  /// not what check_divides takes, but for Uneven::Pad, or gives a rank kMostBatchRows or more. Sizes from the run's
  /// end on are no batches.
  void check(const Share& share) const;

  /// The share's part of the batch that begins at state `position`, or none at the end of the run (and, if per_epoch,
  /// never none before it: an epoch without a batch is passed over). O(log skips). Of an endless run none that would
  /// need a position from 2^63 on: see check_over().
  [[nodiscard]] std::optional<BatchPlan> plan(std::uint64_t position, const Share& share) const;
  /// The batch of a plan, of whatever batch size, as one rank alone would have it.
  [[nodiscard]] BatchPlan whole(const BatchPlan& plan) const;
  /// Where plan() has none: throws InvalidArgument if it is positions that end there, and not the run or its epoch.
  void check_over(std::uint64_t position) const;
  /// The share's part of the last batch of the whole run, or if per_epoch of the epoch that contains `position`; none
  /// where there is no batch. Throws InvalidArgument if endless and not per_epoch.
  [[nodiscard]] std::optional<BatchPlan> last(std::uint64_t position, const Share& share) const;

  /// Batches of the whole run, or if per_epoch of the epoch that contains `position`. Throws InvalidArgument if endless
  /// and not per_epoch.
  [[nodiscard]] std::uint64_t length(std::uint64_t position) const;

  /// Batches of the run that begin before `position`: the step number there.
  [[nodiscard]] std::uint64_t steps_before(std::uint64_t position) const;

  /// From the batch that begins at `position` on, global batches have `size` observations; later entries of the
  /// schedule still apply. Throws as the constructor does.
  void set_batch_size(std::uint64_t position, std::uint64_t size);

  [[nodiscard]] std::uint64_t batch_size_at(std::uint64_t position) const;
  [[nodiscard]] const Epochs& epochs() const noexcept { return epochs_; }
  /// The end of the last epoch, or Order::kNever.
  [[nodiscard]] std::uint64_t run_end() const noexcept;
  [[nodiscard]] const CursorOptions& options() const noexcept { return options_; }

 private:
  void check_rows(std::uint64_t position, std::uint64_t size, std::uint64_t rows) const;
  [[nodiscard]] std::uint64_t segment_end(std::uint64_t position) const;
  [[nodiscard]] std::uint64_t next_change(std::uint64_t position) const;
  [[nodiscard]] std::uint64_t batches_in(std::uint64_t observations, std::uint64_t size) const;
  [[nodiscard]] std::uint64_t batches_left(std::uint64_t position, std::uint64_t end) const;
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> equal_epochs(std::uint64_t position, std::uint64_t to) const;
  [[nodiscard]] std::uint64_t begin_of_next(std::uint64_t position) const;
  struct Counted {
    std::uint64_t batches = 0;
    std::uint64_t last = 0;  // the state before the last of them
  };
  [[nodiscard]] Counted count(std::uint64_t from, std::uint64_t to) const;
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> counted_range(std::uint64_t position) const;
  [[nodiscard]] std::size_t skips_before(std::uint64_t position) const;
  [[nodiscard]] std::uint64_t rank_of(std::uint64_t position) const;
  [[nodiscard]] std::uint64_t select(std::uint64_t rank) const;
  void add_runs(BatchPlan& plan, const Share& share, std::uint64_t taken) const;

  CursorOptions options_;  // skip sorted and merged
  Epochs epochs_;
  std::vector<std::uint64_t> skipped_;  // positions that the skips before the i-th leave out
  std::uint64_t horizon_ = 0;           // no batch begins at or after it: the run's end, or 2^63
};

}  // namespace penstock
