#include "core/columns/cells/ranking.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace penstock::cells {
namespace {

// Keys are not negative, so their bits are ordered as they are.
std::uint64_t bits_of(double key) {
  return std::bit_cast<std::uint64_t>(key);
}

}  // namespace

std::span<const std::uint32_t> Ranking::largest(std::span<const double> keys, std::uint64_t most) {
  const std::uint64_t wanted = std::min<std::uint64_t>(keys.size(), most);
  if (wanted == 0) return {};
  std::int64_t top = 0;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  std::uint64_t used = 0;  // bits in which any two keys differ
  for (const double key : keys) {
    const auto bits = static_cast<std::int64_t>(bits_of(key));
    top = std::max(top, bits);
    least = std::min(least, bits);
    used |= bits_of(key) ^ bits_of(keys[0]);
  }
  const auto range = static_cast<std::uint64_t>(top - least);
  const auto leading = static_cast<unsigned>(std::bit_width(range));
  const auto unused = static_cast<unsigned>(used == 0 ? 0 : std::countr_zero(used));
  const unsigned shift = std::max(unused, leading > 2 * kDigitBits ? leading - 2 * kDigitBits : 0U);

  if (items_.size() < keys.size()) {
    items_.resize(keys.size());
    other_.resize(keys.size());
    numbers_.resize(keys.size());
  }
  pack(keys, shift, static_cast<std::uint64_t>(top));
  if (wanted < count_) drop_beyond(wanted);
  if (leading > shift) pass(0, low_);
  if (leading > shift + kDigitBits) pass(kDigitBits, high_);
  if (shift > unused) put_right(keys);
  for (std::uint64_t i = 0; i < wanted; ++i) numbers_[i] = items_[i].number;
  return std::span(numbers_).first(wanted);
}

void Ranking::pack(std::span<const double> keys, unsigned shift, std::uint64_t top) {
  low_.fill(0);
  high_.fill(0);
  count_ = keys.size();
  for (std::uint32_t i = 0; i < count_; ++i) {
    const auto lead = static_cast<std::uint32_t>((top - bits_of(keys[i])) >> shift);
    items_[i] = {lead, i};
    ++low_[lead % low_.size()];
    ++high_[lead >> kDigitBits];
  }
}

// By their high digits: those of the digit in which the last wanted one lies all stay.
void Ranking::drop_beyond(std::uint64_t most) {
  std::uint64_t sum = 0;
  std::uint32_t last = 0;
  while ((sum += high_[last]) < most) ++last;
  if (sum == count_) return;
  low_.fill(0);
  std::uint64_t kept = 0;
  for (std::uint64_t i = 0; i < count_; ++i) {
    const Item item = items_[i];
    if (item.lead >> kDigitBits > last) continue;
    ++low_[item.lead % low_.size()];
    items_[kept++] = item;
  }
  std::fill(high_.begin() + last + 1, high_.end(), 0);
  count_ = kept;
}

void Ranking::pass(unsigned shift, const Counts& counts) {
  Counts next;
  std::uint32_t sum = 0;
  for (std::size_t digit = 0; digit < counts.size(); ++digit) {
    next[digit] = sum;
    sum += counts[digit];
  }
  for (std::uint64_t i = 0; i < count_; ++i) {
    const Item item = items_[i];
    other_[next[(item.lead >> shift) % next.size()]++] = item;
  }
  items_.swap(other_);
}

// Keys whose leading bits are equal lie together, in the order of their numbers.
void Ranking::put_right(std::span<const double> keys) {
  const auto comes_before = [&](const Item& a, const Item& b) {
    const double left = keys[a.number];
    const double right = keys[b.number];
    return left > right || (left == right && a.number < b.number);
  };
  for (std::uint64_t begin = 0; begin + 1 < count_;) {
    std::uint64_t end = begin + 1;
    while (end < count_ && items_[end].lead == items_[begin].lead) ++end;
    if (end - begin > 1) std::sort(items_.data() + begin, items_.data() + end, comes_before);
    begin = end;
  }
}

}  // namespace penstock::cells
