#include "shuffle/weighted.h"

#include "shuffle/draw_tree.h"
#include "shuffle/draws_advice.h"
#include "shuffle/key.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace penstock::shuffle {
namespace {

// What a key is for. Part of algorithms 1 and 2: never renumbered.
constexpr std::uint64_t kWeightedOffset = 0x7765696768746564;
constexpr std::uint64_t kWeightedTree = 0x7765696768747472;

Key epoch_key(std::uint64_t purpose, std::uint64_t seed, std::uint32_t epoch) {
  return Key().absorb(purpose).absorb(seed).absorb(epoch);
}

}  // namespace

Weighted::Weighted(WeightTable table, std::shared_ptr<const Order> mixed, std::uint64_t seed, bool replace, Draws draws,
                   std::string name)
    : table_(std::move(table)),
      mixed_(std::move(mixed)),
      seed_(seed),
      draws_(draws),
      name_(std::move(name)),
      digest_(hex_of(table_.digest())) {
  if (!replace) table_.check_without_replacement(mixed_->epoch_size());
}

void Weighted::pick(std::uint64_t first, std::uint64_t stride, std::span<Pick> out) const {
  mixed_->pick(first, stride, out);
  while (!out.empty()) {
    const std::uint32_t epoch = out.front().epoch;
    const auto next = std::find_if(out.begin(), out.end(), [&](const Pick& pick) { return pick.epoch != epoch; });
    const auto count = static_cast<std::size_t>(next - out.begin());
    draw(epoch, out.first(count));
    out = out.subspan(count);
  }
}

// Picks of one epoch, whose indices are numbers of draws.
void Weighted::draw(std::uint32_t epoch, std::span<Pick> picks) const {
  const std::uint64_t count = mixed_->epoch_size();
  if (draws_ == Draws::Rounded) {
    DrawTree(table_, count, epoch_key(kWeightedTree, seed_, epoch)).draw(picks);
    return;
  }
  const std::uint64_t offset = scale64(epoch_key(kWeightedOffset, seed_, epoch).state(), table_.total());
  for (Pick& pick : picks) pick.index = table_.systematic(pick.index, count, offset);
}

// With replace=False the draws are the same, so it is no part of it.
std::string Weighted::identity(std::uint64_t position) const {
  return fmt::format(R"({{"algorithm":{},"draws":{},"name":"{}","seed":{},"size":{},"table":"{}"}})",
                     static_cast<std::uint64_t>(draws_), mixed_->identity(position), name_, seed_, table_.size(),
                     digest_);
}

OrderDifference Weighted::difference_to(std::string_view saved, std::uint64_t position) const {
  return drawn_difference(saved, identity(kNever), position);
}

}  // namespace penstock::shuffle
