// DrawTree: the draws of one epoch, by dependent rounding down a binary tree over the observations.
//
// The tree is implicit: a node is a range [a, b) of observations, its children are the halves, the leaves are single
// observations. A node expects X = M * weight / total of the M draws and gets floor(X) or ceil(X) of them. The root
// gets M. Let l and r be the fractions of what the children expect. If l + r < 1, a node that is rounded down rounds
// both children down; one that is rounded up rounds one of them up, the left one with probability l / (l + r). Else a
// node that is rounded up rounds both up; one that is rounded down rounds one of them up, the left one with probability
// (1 - r) / (2 - l - r). So each node is rounded up with the probability of its fraction: an observation that is
// expected x times comes floor(x) or ceil(x) times, and x times in the mean. Where M draws are independent, the number
// of those that any set of observations gets varies at least as much: a period of labels does not show, as it does in
// systematic draws. One hash of (epoch key, node) decides a node. Pivotal sampling: Deville and Tillé, "Unequal
// probability sampling without replacement through a splitting method", 1998; its variance: Chauvet, "On a
// characterization of ordered pivotal sampling", 2012. Immutable; any thread. Needs the table while it lives, and no
// memory.
#pragma once

#include "core/job/order.h"
#include "shuffle/key.h"
#include "shuffle/weight_table.h"

#include <cstdint>
#include <span>

namespace penstock::shuffle {

class DrawTree {
 public:
  /// `draws` is 1 to 2^52; `epoch` the key of seed and epoch.
  DrawTree(const WeightTable& table, std::uint64_t draws, Key epoch) : table_(table), draws_(draws), epoch_(epoch) {}

  /// The index of each pick, a draw's number < draws, becomes that draw's observation; draws ascend. O(log n) each.
  void draw(std::span<Pick> picks) const;

 private:
  struct Walk;
  bool step(Walk& walk) const;

  const WeightTable& table_;
  std::uint64_t draws_;
  Key epoch_;
};

}  // namespace penstock::shuffle
