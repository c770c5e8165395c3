// StrataMembers: what Strata (shuffle/strata.h) interleaves: members with their weights and jitters. Values; any
// thread.
#pragma once

#include "shuffle/key.h"
#include "shuffle/reciprocal.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace penstock::shuffle {

/// Slot `number` of member `member`.
struct Slot {
  std::uint64_t number = 0;
  std::uint32_t member = 0;

  bool operator==(const Slot&) const = default;
};

struct StrataMember {
  std::uint64_t weight = 0;  // at least 1
  Key key;                   // of its jitter; that of the first member turns words

  /// Where slot `number` stands in its stratum, in 2^-32 of it.
  [[nodiscard]] std::uint64_t jitter(std::uint64_t number) const noexcept { return key.at(number) >> 32; }
};

struct StrataMembers {
  std::vector<StrataMember> members = {};
  std::uint64_t total = 0;                  // of the weights
  std::vector<Reciprocal> by_weight = {};   // of members, and …
  std::optional<Reciprocal> by_total = {};  // … of their sum, for jittered strata
};

}  // namespace penstock::shuffle
