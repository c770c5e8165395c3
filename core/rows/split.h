// Split: holds out one of each run of `one_in` observations, by (seed, number of the run) alone.
//
// So what is held out stays when observations are appended. Both parts keep the order and are looked up in constant
// time; nothing is kept. A value; any thread.
#pragma once

#include "core/base/mix64.h"

#include <cstdint>

namespace penstock {

struct Split {
  std::uint64_t one_in = 2;  // at least 2
  std::uint64_t seed = 0;
  bool held_out = false;  // which part: those held out, or the others

  /// Which of the run's observations is held out, if the run has as many: the last one may be short.
  [[nodiscard]] std::uint64_t slot(std::uint64_t run) const noexcept {
    constexpr std::uint64_t kSplit = 0x73706c69745f3031;  // keeps it apart from other draws of a seed
    constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15U;
    const std::uint64_t random = mix64((mix64((mix64(kSplit) ^ seed) + kGolden) ^ run) + kGolden);
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((static_cast<Wide>(random) * one_in) >> 64);
  }

  /// Observations of this part, of `size` in all.
  [[nodiscard]] std::uint64_t count(std::uint64_t size) const noexcept {
    const std::uint64_t runs = size / one_in;
    const std::uint64_t held = runs + (slot(runs) < size % one_in ? 1 : 0);
    return held_out ? held : size - held;
  }

  /// The number, among all, of observation i of this part.
  [[nodiscard]] std::uint64_t at(std::uint64_t i) const noexcept {
    if (held_out) return i * one_in + slot(i);
    const std::uint64_t run = i / (one_in - 1);
    const std::uint64_t place = i % (one_in - 1);
    return run * one_in + place + (place >= slot(run) ? 1 : 0);
  }
};

}  // namespace penstock
