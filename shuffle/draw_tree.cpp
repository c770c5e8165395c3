#include "shuffle/draw_tree.h"

#include <algorithm>
#include <array>
#include <cassert>

namespace penstock::shuffle {
namespace {

// `value` if so, else 0, without a branch: which way a draw goes is as good as random.
std::uint64_t where(bool is_so, std::uint64_t value) {
  return value & (0 - std::uint64_t{is_so});
}

std::uint64_t select(bool is_first, std::uint64_t first, std::uint64_t second) {
  return second ^ where(is_first, first ^ second);
}

}  // namespace

// A draw on its way down: it is number `left` of those of the node [begin, begin + length).
struct DrawTree::Walk {
  std::uint64_t begin = 0;
  std::uint64_t length = 0;
  std::uint64_t left = 0;
  Expected before;     // of the observations before `begin`
  Expected node;       // of the node
  bool is_up = false;  // whether the node is rounded up

  [[nodiscard]] std::uint64_t middle() const noexcept { return begin + length / 2; }
};

// Whether it was above a leaf.
inline bool DrawTree::step(Walk& walk) const {
  if (walk.length <= 1) return false;
  const std::uint64_t middle = walk.middle();
  const std::uint64_t random = epoch_.at(middle);  // each node has a middle of its own
  if (walk.node.whole == 0 && walk.is_up) [[unlikely]] {
    // One draw, and below no node has more: one of the node's observations by weight.
    walk.begin = table_.pick(walk.begin, walk.begin + walk.length, random);
    walk.length = 1;
    return false;
  }
  const std::uint64_t total = table_.total();
  const Expected here = table_.expected(middle, draws_);
  const Expected first = here.minus(walk.before, total);
  const Expected second = walk.node.minus(first, total);
  const bool carries = walk.node.part < first.part;  // l + r >= 1, and the node's fraction is l + r - 1
  const bool is_one = carries != walk.is_up;         // one child is rounded up; else both are as the node is
  const std::uint64_t chance = first.part - where(carries, walk.node.part);          // l, or 1 - r
  const std::uint64_t of = select(carries, total - walk.node.part, walk.node.part);  // l + r, or 2 - l - r
  const bool first_is_up = select(is_one, scale64(random, of) < chance ? 1 : 0, walk.is_up ? 1 : 0) != 0;
  const std::uint64_t count = first.whole + (first_is_up ? 1 : 0);
  const bool goes_on = walk.left >= count;  // into the second child
  walk.begin += where(goes_on, middle - walk.begin);
  walk.length = select(goes_on, walk.length - walk.length / 2, walk.length / 2);
  walk.left -= where(goes_on, count);
  walk.before.whole = select(goes_on, here.whole, walk.before.whole);
  walk.before.part = select(goes_on, here.part, walk.before.part);
  walk.node.whole = select(goes_on, second.whole, first.whole);
  walk.node.part = select(goes_on, second.part, first.part);
  walk.is_up = first_is_up != (goes_on && is_one);  // the second child is up where the first is, unless only one is
  table_.prefetch(walk.middle());
  return true;
}

// Several walk in step: while one waits for memory, the others go on.
void DrawTree::draw(std::span<Pick> picks) const {
  constexpr std::size_t kTogether = 8;
  std::array<Walk, kTogether> walks;
  while (!picks.empty()) {
    const std::size_t count = std::min(kTogether, picks.size());
    for (std::size_t i = 0; i < count; ++i) {
      assert(picks[i].index < draws_);
      walks[i] = {0, table_.size(), picks[i].index, {}, {draws_, 0}, false};
    }
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (std::size_t i = 0; i < count; ++i) goes_on |= step(walks[i]);
    }
    for (std::size_t i = 0; i < count; ++i) picks[i].index = walks[i].begin;
    picks = picks.subspan(count);
  }
}

}  // namespace penstock::shuffle
