// Job: all that decides what stands at a position: order, cursor and sources. Start reading here.
//
// Positions go in, picks come out; there are no threads, files or buffers. The loader, and code that reads by other
// means (collections, adapters), stand on it. Immutable: any thread. What changes the batch size makes another Job.
#pragma once

#include "core/job/carry_over.h"
#include "core/job/cursor.h"
#include "core/job/order.h"
#include "core/job/source_identity.h"
#include "core/job/state.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace penstock {

enum class OnMismatch { Refuse, Restart, KeepPosition };

/// Where a job goes on.
struct Resume {
  std::uint64_t position = 0;
  std::string message;  // "resumes at epoch 1, position 4,096, step 32"
  /// The job with the weights that the state's had set before the position; null: it is this one.
  std::shared_ptr<const class Job> job = nullptr;
};

class Job {
 public:
  /// `sources` by the numbers of the order's picks. The options' epoch_size, grown and stage_end are taken from the
  /// order. Throws as Cursor does, and InvalidArgument for an order whose identity is no JSON.
  Job(std::shared_ptr<const Order> order, std::span<const SourceIdentity> sources, CursorOptions options);

  /// The share's part of the batch that begins at state `position`, or none at the end of the run. See Cursor::plan.
  [[nodiscard]] std::optional<BatchPlan> plan(std::uint64_t position, const Share& share) const {
    return cursor_.plan(position, share);
  }
  /// out[i] = what stands at the i-th of the plan's positions; `out` has plan.valid elements.
  void pick(const BatchPlan& plan, std::span<Pick> out) const;

  /// The state at `position`: the same on every rank.
  [[nodiscard]] State state(std::uint64_t position) const { return {kStateVersion, position, json()}; }
  /// Where a saved state goes on. O(1): nothing is read. Throws StateMismatch if it is of another job (unless
  /// `on_mismatch` allows it) or of a later version, InvalidArgument if it is no state. KeepPosition goes on after as
  /// many records (see carry_over), and refuses where that is no position; weights that were set go on where that is
  /// the same position, without sources that this job lacks.
  [[nodiscard]] Resume load(const State& state, OnMismatch on_mismatch) const;
  /// Throws InvalidArgument for a position that no run reaches (beyond 2^63).
  static void check_position(std::uint64_t position);

  /// The same job, with weights from `position` on, or from where the order lets them begin; of weights that begin
  /// there already these count. Throws InvalidArgument for a job that is not steered, for weights whose sources have
  /// given their caps, and for a text beyond what states may have.
  [[nodiscard]] Job with_weights(std::uint64_t position, std::vector<std::uint64_t> weights) const;
  /// The same job, whose global batches have `size` observations from the one at `position` on.
  [[nodiscard]] Job with_batch_size(std::uint64_t position, std::uint64_t size) const;

  /// Of the observation at `position`; from the run's end on, the number of epochs.
  [[nodiscard]] std::uint64_t epoch(std::uint64_t position) const {
    return cursor_.epochs().number(std::min(position, cursor_.run_end()));
  }
  /// "epoch 1, position 4,096, step 32".
  [[nodiscard]] std::string describe(std::uint64_t position) const;

  [[nodiscard]] const Order& order() const noexcept { return *order_; }
  [[nodiscard]] const Cursor& cursor() const noexcept { return cursor_; }
  /// What State::job holds.
  [[nodiscard]] std::string json() const { return json_before(Order::kNever); }
  /// The same with those of the weights that were set that begin before `position`: what was known there.
  [[nodiscard]] std::string json_before(std::uint64_t position) const;
  /// The same with a digest of the weights that were set, and the last of them: short, for comparing jobs.
  [[nodiscard]] std::string summary() const;

 private:
  struct Difference {
    std::string text;
    CarryOver carried;
    bool is_of_weights = false;  // those that the state's job had set cannot be, as they are
  };
  [[nodiscard]] std::optional<Difference> difference_to(const State& state, std::shared_ptr<const Job>& resumed) const;
  [[nodiscard]] std::shared_ptr<const Job> with_saved(const State& state, bool lacking_too = false) const;
  [[nodiscard]] std::shared_ptr<const Job> kept_weights(const State& state, const Difference& difference,
                                                        std::shared_ptr<const Job> resumed, std::string& text) const;
  [[nodiscard]] Job with_steering(Steering steering) const;

  std::shared_ptr<const Order> order_;
  Cursor cursor_;
  std::shared_ptr<const JobText> text_;
};

}  // namespace penstock
