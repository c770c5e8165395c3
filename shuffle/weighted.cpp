#include "shuffle/weighted.h"

#include "shuffle/key.h"
#include "shuffle/permutation.h"

#include <fmt/format.h>

#include <utility>

namespace penstock::shuffle {
namespace {

// Keeps the offsets apart from all other keys of a seed. Part of algorithm 1.
constexpr std::uint64_t kWeightedOffset = 0x7765696768746564;

}  // namespace

Weighted::Weighted(WeightTable table, std::shared_ptr<const Order> draws, std::uint64_t seed, bool replace,
                   std::string name)
    : table_(std::move(table)),
      draws_(std::move(draws)),
      seed_(seed),
      name_(std::move(name)),
      digest_(hex_of(table_.digest())) {
  if (!replace) table_.check_without_replacement(draws_->epoch_size());
}

void Weighted::pick(std::uint64_t first, std::uint64_t stride, std::span<Pick> out) const {
  draws_->pick(first, stride, out);
  const std::uint64_t count = draws_->epoch_size();
  for (std::size_t i = 0; i < out.size();) {
    const std::uint32_t epoch = out[i].epoch;
    const Key key = Key().absorb(kWeightedOffset).absorb(seed_).absorb(epoch);
    const std::uint64_t offset = scale64(key.state(), table_.total());
    for (; i < out.size() && out[i].epoch == epoch; ++i) out[i].index = table_.draw(out[i].index, count, offset);
  }
}

// With replace=False the draws are the same, so it is no part of it.
std::string Weighted::identity(std::uint64_t position) const {
  return fmt::format(R"({{"algorithm":{},"draws":{},"name":"{}","seed":{},"size":{},"table":"{}"}})", kAlgorithm,
                     draws_->identity(position), name_, seed_, table_.size(), digest_);
}

}  // namespace penstock::shuffle
