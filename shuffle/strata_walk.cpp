#include "shuffle/strata_walk.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

namespace penstock::shuffle {
namespace {

// As many steps from where the edges are as relative times surely fit 64 bits.
constexpr std::uint64_t kMostSteps = std::uint64_t{1} << 24;

// Few positions lie further from W x than two standard deviations of S jitters; those that do are sought again. None
// lies further than S - 1. Any whole number is right.
std::uint64_t lead_of(std::size_t members) {
  const auto usual = 1 + static_cast<std::uint64_t>(0.8 * std::sqrt(static_cast<double>(members)));
  return std::min<std::uint64_t>(usual, members - 1);
}

}  // namespace

StrataWalk::StrataWalk(const StrataMembers& strata)
    : strata_(strata),
      lead_(lead_of(strata.members.size())),
      edges_(strata.members.size(), boost::container::default_init),
      next_(strata.members.size(), boost::container::default_init) {}

StrataWalk::Edge StrataWalk::edge(std::size_t member, std::uint64_t x) const {
  const auto [whole, rest] = strata_.by_total->divide(Wide{strata_.members[member].weight} * x);
  return {whole, rest};
}

// Returns how many slots lie before time X / W, and makes next_ those that follow, in no order.
std::uint64_t StrataWalk::set_edges(std::uint64_t x) {
  const std::uint64_t total = strata_.total;
  const bool goes_on = has_edges_ && x > at_;
  if (goes_on && x - at_ != distance_) {
    distance_ = x - at_;
    steps_.resize(edges_.size());
    for (std::size_t s = 0; s < steps_.size(); ++s) steps_[s] = edge(s, distance_);
  }
  at_ = x;
  has_edges_ = true;
  std::uint64_t before = 0;
  for (std::size_t s = 0; s < edges_.size(); ++s) {
    const StrataMember& member = strata_.members[s];
    auto& [whole, rest] = edges_[s];
    if (goes_on) {
      whole += steps_[s].whole;
      rest += steps_[s].rest;
      if (rest >= total) {
        rest -= total;
        ++whole;
      }
    } else {
      edges_[s] = edge(s, x);
    }
    const bool is_past = Wide{member.jitter(whole)} * total < Wide{rest} << 32;
    next_[s].member = static_cast<std::uint32_t>(s);
    next_[s].number = whole + (is_past ? 1 : 0);
    before += next_[s].number;
  }
  return before;
}

void StrataWalk::set_time(Next& next) const {
  const StrataMember& member = strata_.members[next.member];
  const Edge& edge = edges_[next.member];
  const Wide strata = (Wide{next.number - edge.whole} << 32) + member.jitter(next.number);
  const Wide distance = strata * strata_.total - (Wide{edge.rest} << 32);
  const Reciprocal& by_weight = strata_.by_weight[next.member];
  const auto [time, rest] = by_weight.holds(distance) ? by_weight.divide(distance) : Reciprocal::Result{UINT64_MAX, 0};
  next.time = time;
  next.rest = rest;
}

bool StrataWalk::is_before(const Next& a, const Next& b) const {
  if (a.time != b.time) return a.time < b.time;
  const Wide left = Wide{a.rest} * strata_.members[b.member].weight;
  const Wide right = Wide{b.rest} * strata_.members[a.member].weight;
  return left != right ? left < right : a.member < b.member;
}

void StrataWalk::sink(std::size_t at) {
  const Next moved = next_[at];
  while (true) {
    std::size_t child = 2 * at + 1;
    if (child >= next_.size()) break;
    if (child + 1 < next_.size() && is_before(next_[child + 1], next_[child])) ++child;
    if (!is_before(next_[child], moved)) break;
    next_[at] = next_[child];
    at = child;
  }
  next_[at] = moved;
}

void StrataWalk::step() {
  ++next_.front().number;
  set_time(next_.front());
  sink(0);
  ++position_;
}

void StrataWalk::seek(std::uint64_t position) {
  sought_ = position;
  position_ = set_edges(position - std::min(position, lead_));
  // |W x - the position of x| < S
  if (position_ > position) position_ = set_edges(position - std::min<std::uint64_t>(position, edges_.size()));
  assert(position_ <= position);
  for (Next& next : next_) set_time(next);
  for (std::size_t i = next_.size() / 2; i-- > 0;) sink(i);
  while (position_ < position) step();
}

void StrataWalk::advance(std::uint64_t position) {
  if (position - position_ > next_.size() || position - sought_ > kMostSteps) {
    return seek(position);
  }
  while (position_ < position) step();
}

void StrataWalk::count(std::span<std::uint64_t> out) const {
  for (const Next& next : next_) out[next.member] = next.number;
}

}  // namespace penstock::shuffle
