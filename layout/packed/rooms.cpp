#include "layout/packed/rooms.h"

#include <bit>
#include <cstddef>

namespace penstock::layout {

Rooms::Rooms(std::uint64_t most) {
  std::uint64_t bits = most + 1;
  do {
    const std::uint64_t words = (bits + 63) / 64;
    levels_.emplace_back(words);
    bits = words;
  } while (bits > 1);
}

void Rooms::set(std::uint64_t room) noexcept {
  for (auto& level : levels_) {
    std::uint64_t& word = level[room / 64];
    const std::uint64_t bit = std::uint64_t{1} << (room % 64);
    const bool was_empty = word == 0;
    word |= bit;
    if (!was_empty) return;
    room /= 64;
  }
}

void Rooms::clear(std::uint64_t room) noexcept {
  for (auto& level : levels_) {
    std::uint64_t& word = level[room / 64];
    word &= ~(std::uint64_t{1} << (room % 64));
    if (word != 0) return;
    room /= 64;
  }
}

std::uint64_t Rooms::least(std::uint64_t from) const noexcept {
  for (std::size_t i = 0; i < levels_.size(); ++i) {
    const std::uint64_t word = from / 64;
    if (word >= levels_[i].size()) return kNone;
    const std::uint64_t after = levels_[i][word] & (~std::uint64_t{0} << (from % 64));
    if (after == 0) {
      from = word + 1;  // none in this word: which is the next that is not empty?
      continue;
    }
    std::uint64_t found = word * 64 + static_cast<std::uint64_t>(std::countr_zero(after));
    while (i-- > 0) found = found * 64 + static_cast<std::uint64_t>(std::countr_zero(levels_[i][found]));
    return found;
  }
  return kNone;
}

std::uint64_t Rooms::most(std::uint64_t to) const noexcept {
  for (std::size_t i = 0; i < levels_.size(); ++i) {
    const std::uint64_t word = to / 64;
    const std::uint64_t before = levels_[i][word] & (~std::uint64_t{0} >> (63 - to % 64));
    if (before == 0) {
      if (word == 0) return kNone;
      to = word - 1;  // none in this word: which is the last before it that is not empty?
      continue;
    }
    std::uint64_t found = word * 64 + 63 - static_cast<std::uint64_t>(std::countl_zero(before));
    while (i-- > 0) found = found * 64 + 63 - static_cast<std::uint64_t>(std::countl_zero(levels_[i][found]));
    return found;
  }
  return kNone;
}

}  // namespace penstock::layout
