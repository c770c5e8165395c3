#include "shuffle/blocks_epoch.h"

#include <algorithm>
#include <numeric>

namespace penstock::shuffle {
namespace {

// What a key of the order is for; absorbed, so that no two uses share a key. The first keeps `blocks` apart from a
// plain Permutation of the same seed. Part of algorithm 1: never renumbered.
enum BlocksPurpose : std::uint64_t {
  kBlocksOrder = 0x626c6f636b73,
  kTurn = 1,
  kBlockOrder,
  kLongPieces,
  kShortPieces,
  kFetch
};

}  // namespace

BlocksEpoch::BlocksEpoch(std::uint64_t size, const BlocksShape& shape, const LaneTable& table, std::uint64_t seed,
                         std::uint64_t epoch)
    : size_(size),
      epoch_(epoch),
      shape_(shape),
      table_(table),
      key_(Key().absorb(kBlocksOrder).absorb(seed).absorb(epoch).absorb(size)),
      turn_(scale64(key_.absorb(kTurn).state(), size)),
      block_count_(size / shape.block) {
  if (block_count_ > 0) block_order_.emplace(permutation(block_count_, key_.absorb(kBlockOrder)));
}

void BlocksEpoch::pick(std::uint64_t offset, std::uint64_t stride, std::span<Pick> out) const {
  // Offsets offset + i * stride meet the same lane again after `period` of them, `step` later on the lane's own clock.
  const std::uint64_t common = std::gcd(stride, shape_.lanes);
  const std::uint64_t period = shape_.lanes / common;
  const std::uint64_t step = stride / common;
  const std::size_t lanes_met = static_cast<std::size_t>(std::min<std::uint64_t>(period, out.size()));
  for (std::size_t i = 0; i < lanes_met; ++i) {
    const std::uint64_t first = offset + i * stride;
    const auto every = static_cast<std::size_t>(period);
    pick_lane(first % shape_.lanes, first / shape_.lanes, step,
              {out.data() + i, every, (out.size() - i - 1) / every + 1});
  }
}

void BlocksEpoch::pick_lane(std::uint64_t number, std::uint64_t time, std::uint64_t step, Picks out) const {
  const LaneTable::Lane lane = table_.lane(number);
  // Only an epoch's last fetch of the lane reaches the ragged piece; its place takes a permutation to find.
  std::optional<std::uint64_t> piece;
  Chunk elements;
  std::size_t done = 0;
  while (done < out.count) {
    const std::uint64_t fetch = time / shape_.fetch;
    const std::uint64_t number_of_fetch = fetch_number(number, fetch);
    const std::uint64_t begin = fetch * shape_.fetch;
    const std::uint64_t length = std::min(shape_.fetch, lane.length - begin);
    const Permutation inner = permutation(length, key_.absorb(kFetch).absorb(number).absorb(fetch));
    while (done < out.count && time < begin + length) {
      const std::uint64_t left = (begin + length - 1 - time) / step + 1;
      const auto count = static_cast<std::size_t>(std::min<std::uint64_t>({left, out.count - done, elements.size()}));
      const std::span<std::uint64_t> chunk(elements.data(), count);
      for (std::size_t i = 0; i < count; ++i) chunk[i] = time - begin + i * step;
      inner(chunk, chunk);
      for (std::uint64_t& element : chunk) {
        element += begin;
        if (element < lane.whole) {
          element += lane.whole_begin;
        } else {
          if (!piece) piece = piece_begin(number);
          element = *piece + (element - lane.whole);
        }
      }
      observe(chunk);
      for (std::size_t i = 0; i < count; ++i) {
        Pick& pick = out.first[(done + i) * out.every];
        pick.index = chunk[i];
        pick.fetch = number_of_fetch;
      }
      done += count;
      time += count * step;
    }
  }
}

std::uint64_t BlocksEpoch::fetch_number(std::uint64_t lane, std::uint64_t fetch) const noexcept {
  const std::uint64_t longest = (size_ - 1) / shape_.lanes + 1;
  const std::uint64_t of_a_lane = (longest - 1) / shape_.fetch + 1;
  return (epoch_ * of_a_lane + fetch) * shape_.lanes + lane;
}

std::uint64_t BlocksEpoch::piece_begin(std::uint64_t number) const {
  const std::uint64_t long_lanes = table_.long_lanes();
  if (number < long_lanes) {
    const std::uint64_t slot = permutation(long_lanes, key_.absorb(kLongPieces))(number);
    return table_.ragged_begin() + slot * table_.long_ragged();
  }
  const std::uint64_t slot = permutation(shape_.lanes - long_lanes, key_.absorb(kShortPieces))(number - long_lanes);
  return table_.ragged_begin() + long_lanes * table_.long_ragged() + slot * table_.short_ragged();
}

void BlocksEpoch::observe(std::span<std::uint64_t> elements) const {
  if (block_order_) {
    Chunk blocks;
    const std::span<std::uint64_t> numbers(blocks.data(), elements.size());
    // Elements of the short block stay; they stand in here with a number that is thrown away.
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      numbers[i] = std::min(elements[i] / shape_.block, block_count_ - 1);
    }
    const std::uint64_t in_blocks = block_count_ * shape_.block;
    Chunk images;
    (*block_order_)(numbers, std::span<std::uint64_t>(images.data(), numbers.size()));
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (elements[i] < in_blocks) elements[i] = elements[i] - numbers[i] * shape_.block + images[i] * shape_.block;
    }
  }
  for (std::uint64_t& element : elements) {
    element += turn_;
    if (element >= size_) element -= size_;
  }
}

}  // namespace penstock::shuffle
