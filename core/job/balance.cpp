#include "core/job/balance.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

namespace penstock {
namespace {

__extension__ using Wide = unsigned __int128;

// Calls give(number, taker) for each of `numbers`, which are in the order in which they go: to the taker with least so
// far of those that have room; `room(taker)` is how many it may have.
template <typename Room, typename Give>
void share_out(std::span<const std::uint64_t> numbers, std::span<const std::uint64_t> costs, std::uint64_t takers,
               const Room& room, const Give& give) {
  using Taker = std::pair<Wide, std::uint64_t>;  // what it has, number
  std::vector<Taker> heap;
  heap.reserve(takers);
  std::vector<std::uint64_t> left(takers);
  for (std::uint64_t taker = 0; taker < takers; ++taker) {
    left[taker] = room(taker);
    if (left[taker] > 0) heap.emplace_back(0, taker);
  }
  std::priority_queue<Taker, std::vector<Taker>, std::greater<>> least(std::greater<>(), std::move(heap));
  for (const std::uint64_t number : numbers) {
    auto [sum, taker] = least.top();
    least.pop();
    give(number, taker);
    if (--left[taker] > 0) least.emplace(sum + costs[number], taker);
  }
}

// Observations of the first `rows` * R that are rank r's where i mod R is.
std::uint64_t count_of(std::uint64_t observations, std::uint64_t rank, std::uint64_t world_size) {
  return observations / world_size + (rank < observations % world_size ? 1 : 0);
}

// Calls give(observation, rank) for all observations, heaviest first.
template <typename Give>
void share_among_ranks(std::span<const std::uint64_t> costs, std::uint64_t world_size, const Give& give) {
  std::vector<std::uint64_t> heaviest_first(costs.size());
  std::iota(heaviest_first.begin(), heaviest_first.end(), std::uint64_t{0});
  std::stable_sort(heaviest_first.begin(), heaviest_first.end(),
                   [&](std::uint64_t a, std::uint64_t b) { return costs[a] > costs[b]; });
  share_out(
      heaviest_first, costs, world_size, [&](std::uint64_t rank) { return count_of(costs.size(), rank, world_size); },
      give);
}

// A rank's observations, which come heaviest first, in the order of its rows. Padding comes last: the first parts are
// full.
std::vector<std::uint64_t> in_parts(std::span<const std::uint64_t> own, std::span<const std::uint64_t> costs,
                                    std::uint64_t rows, std::uint64_t micro_batches) {
  const std::uint64_t part_rows = rows / micro_batches;
  std::vector<std::vector<std::uint64_t>> parts(micro_batches);
  share_out(
      own, costs, micro_batches,
      [&](std::uint64_t part) { return std::min(part_rows, own.size() - std::min(own.size(), part * part_rows)); },
      [&](std::uint64_t number, std::uint64_t part) { parts[part].push_back(number); });
  std::vector<std::uint64_t> out;
  out.reserve(own.size());
  for (auto& part : parts) {
    std::sort(part.begin(), part.end());
    out.insert(out.end(), part.begin(), part.end());
  }
  return out;
}

}  // namespace

void balance_ranks(std::span<const std::uint64_t> costs, const Share& share, std::uint64_t rows,
                   std::vector<std::vector<std::uint64_t>>& out) {
  out.assign(share.world_size, {});
  share_among_ranks(costs, share.world_size,
                    [&](std::uint64_t number, std::uint64_t rank) { out[rank].push_back(number); });
  for (auto& own : out) own = in_parts(own, costs, rows, share.micro_batches);
}

void balance_rows(std::span<const std::uint64_t> costs, const Share& share, std::uint64_t rows,
                  std::vector<std::uint64_t>& out) {
  std::vector<std::uint64_t> own;
  share_among_ranks(costs, share.world_size, [&](std::uint64_t number, std::uint64_t rank) {
    if (rank == share.rank) own.push_back(number);
  });
  out = in_parts(own, costs, rows, share.micro_batches);
}

}  // namespace penstock
