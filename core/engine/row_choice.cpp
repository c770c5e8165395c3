#include "core/engine/row_choice.h"

#include "core/job/balance.h"
#include "core/job/pick_wait.h"

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

std::vector<std::uint64_t> RowChoice::costs_of(std::span<const Pick> picks, const std::atomic<bool>& cancelled) const {
  std::vector<std::uint64_t> costs(picks.size());
  costs_->of(picks, costs, cancelled);
  return costs;
}

std::vector<RowChoice::Place> RowChoice::places(const Job& job, const BatchPlan& plan) const {
  const BatchPlan whole = job.cursor().whole(plan);
  std::vector<Place> places(whole.valid);
  if (!costs_) {
    for (std::uint64_t i = 0; i < whole.valid; ++i) places[i] = {i % share_.world_size, i / share_.world_size};
    return places;
  }
  std::vector<Pick> all(whole.valid);
  job.pick(whole, all);
  const std::atomic<bool> cancelled{false};
  std::vector<std::vector<std::uint64_t>> ranks;
  balance_ranks(costs_of(all, cancelled), share_, plan.rows, ranks);
  for (std::uint64_t rank = 0; rank < ranks.size(); ++rank) {
    for (std::uint64_t row = 0; row < ranks[rank].size(); ++row) places[ranks[rank][row]] = {rank, row};
  }
  return places;
}

void RowChoice::choose(const Job& job, const BatchPlan& plan, std::vector<std::uint64_t>& positions,
                       std::vector<Pick>& picks, const std::atomic<bool>& cancelled) const {
  const PicksWanted wanted(cancelled);
  if (!costs_ || plan.valid == 0) {  // nothing is read for a rank that gets no row
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
  std::vector<std::uint64_t> numbers;
  balance_rows(costs_of(all, cancelled), share_, plan.rows, numbers);
  assert(numbers.size() == plan.valid);
  positions.clear();
  picks.clear();
  for (const std::uint64_t number : numbers) {
    positions.push_back(all_positions[number]);
    picks.push_back(all[number]);
  }
}

}  // namespace penstock
