#include "core/engine/row_choice.h"

#include "core/job/balance.h"

#include <cassert>

namespace penstock {
namespace {

void list_positions(const BatchPlan& plan, std::vector<std::uint64_t>& positions) {
  positions.clear();
  positions.reserve(plan.valid);
  for (const PositionRun& run : plan.runs) {
    for (std::uint64_t i = 0; i < run.count; ++i) positions.push_back(run.first + i * run.stride);
  }
}

}  // namespace

void RowChoice::choose(const Job& job, const BatchPlan& plan, std::vector<std::uint64_t>& positions,
                       std::vector<Pick>& picks) const {
  if (!costs_) {
    list_positions(plan, positions);
    picks.resize(plan.valid);
    job.pick(plan, picks);
    return;
  }
  const BatchPlan whole = job.cursor().whole(plan);
  std::vector<std::uint64_t> all_positions;
  list_positions(whole, all_positions);
  std::vector<Pick> all(whole.valid);
  job.pick(whole, all);
  std::vector<std::uint64_t> costs(all.size());
  costs_->of(all, costs);
  std::vector<std::uint64_t> numbers;
  balance_rows(costs, share_, plan.rows, micro_batches_, numbers);
  assert(numbers.size() == plan.valid);
  positions.clear();
  picks.clear();
  for (const std::uint64_t number : numbers) {
    positions.push_back(all_positions[number]);
    picks.push_back(all[number]);
  }
}

}  // namespace penstock
