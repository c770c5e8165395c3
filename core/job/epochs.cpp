#include "core/job/epochs.h"

#include "core/base/error.h"
#include "core/job/position.h"

#include <algorithm>
#include <iterator>

namespace penstock {

Epochs::Epochs(const EpochSizes& sizes) {
  if (sizes.empty() || sizes.front().first != 0) {
    raise(ErrorKind::InvalidArgument, "the sizes of epochs do not begin at position 0");
  }
  for (const auto& [begin, size] : sizes) {
    if (size == 0) raise(ErrorKind::InvalidArgument, "an epoch of 0 observations");
    if (size > kMostPosition) raise(ErrorKind::InvalidArgument, "an epoch of {} observations", with_commas(size));
    if (stretches_.empty()) {
      stretches_.push_back({begin, size, 0});
      continue;
    }
    const Stretch& last = stretches_.back();
    if (begin <= last.begin || begin > kMostPosition || (begin - last.begin) % last.size != 0) {
      raise(ErrorKind::InvalidArgument,
            "epochs of {} observations from position {} on: those before it have {} from position {} on, and none of "
            "them ends there",
            with_commas(size), with_commas(begin), with_commas(last.size), with_commas(last.begin));
    }
    stretches_.push_back({begin, size, number(begin)});
  }
}

std::vector<Epochs::Stretch>::const_iterator Epochs::find(std::uint64_t position) const noexcept {
  return std::prev(std::upper_bound(stretches_.begin(), stretches_.end(), position,
                                    [](std::uint64_t p, const Stretch& stretch) { return p < stretch.begin; }));
}

std::uint64_t Epochs::next_size(std::uint64_t position) const noexcept {
  const auto next = std::next(find(position));
  return next == stretches_.end() ? kNoPosition : next->begin;
}

std::optional<std::uint64_t> Epochs::begin_of(std::uint64_t number) const noexcept {
  const auto after = std::upper_bound(stretches_.begin(), stretches_.end(), number,
                                      [](std::uint64_t n, const Stretch& stretch) { return n < stretch.first; });
  const Stretch& in = *std::prev(after);
  std::uint64_t begin = 0;
  if (__builtin_mul_overflow(number - in.first, in.size, &begin) || __builtin_add_overflow(begin, in.begin, &begin) ||
      begin > kMostPosition) {
    return std::nullopt;
  }
  return begin;
}

}  // namespace penstock
