// RowChoice: which observations of a global batch are each rank's rows, and in which order: by turns, or by cost.
//
// Loaders, locate and trace all ask it: nothing else knows which of the two it is.
// Immutable but for what it counts; any thread. By cost it waits for reads.
#pragma once

#include "core/engine/row_costs.h"
#include "core/job/job.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace penstock {

class RowChoice {
 public:
  /// By turns (i mod R), as the plans of the job have them.
  explicit RowChoice(const Share& share) : share_(share) {}
  /// By cost (core/job/balance.h).
  RowChoice(const Share& share, std::unique_ptr<const RowCosts> costs) : share_(share), costs_(std::move(costs)) {}

  /// Positions of the rows of `plan`, this rank's part of a batch of `job`, and what stands there; plan.valid of each.
  /// Throws what reading costs and the order throw; CostsCancelled or PicksCancelled soon after `cancelled` is set.
  void choose(const Job& job, const BatchPlan& plan, std::vector<std::uint64_t>& positions, std::vector<Pick>& picks,
              const std::atomic<bool>& cancelled) const;

  /// The rank that gets each observation of the whole batch that `plan` is a part of, by position, and the row that it
  /// is there. Throws what reading costs throws.
  struct Place {
    std::uint64_t rank = 0;
    std::uint64_t row = 0;
  };
  [[nodiscard]] std::vector<Place> places(const Job& job, const BatchPlan& plan) const;

  /// Whether choosing may wait for reads.
  [[nodiscard]] bool may_wait() const noexcept { return costs_ != nullptr; }
  [[nodiscard]] const Share& share() const noexcept { return share_; }

 private:
  [[nodiscard]] std::vector<std::uint64_t> costs_of(std::span<const Pick> picks,
                                                    const std::atomic<bool>& cancelled) const;

  const Share share_;
  const std::unique_ptr<const RowCosts> costs_;
};

}  // namespace penstock
