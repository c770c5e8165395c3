// RowDraws: random numbers that a column draws for one row: a pure function of (seed, epoch, observation).
//
// SplitMix64 (core/base/mix64.h) from a state that mixes the three. Integers alone, so all platforms draw the same. One
// thread at a time.
#pragma once

#include "core/base/mix64.h"
#include "core/rows/source.h"

#include <cstdint>

namespace penstock {

class RowDraws {
 public:
  /// `purpose` keeps columns that draw for the same row apart.
  RowDraws(std::uint64_t seed, const Row& row, std::uint64_t purpose = 0)
      : RowDraws(seed ^ mix64(purpose), row.epoch, row.source->base_index(row.index)) {}
  RowDraws(std::uint64_t seed, std::uint64_t epoch, std::uint64_t observation)
      : state_(mix64(mix64(mix64(seed + kGolden) + epoch) + observation)) {}

  /// 64 bits.
  std::uint64_t next() noexcept { return mix64(state_ += kGolden); }
  /// Below `bound`: the high half of a product, whose bias is below bound / 2^64.
  std::uint64_t below(std::uint64_t bound) noexcept {
    __extension__ using u128 = unsigned __int128;
    return static_cast<std::uint64_t>((u128{next()} * bound) >> 64);
  }
  /// True with this probability: a multiple of 2^-53 in [0, 1) is below it.
  bool happens(double probability) noexcept { return static_cast<double>(next() >> 11) * 0x1p-53 < probability; }

 private:
  static constexpr std::uint64_t kGolden = 0x9e37'79b9'7f4a'7c15U;

  std::uint64_t state_;
};

}  // namespace penstock
