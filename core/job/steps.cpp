#include "core/job/steps.h"

#include "core/base/error.h"

#include <algorithm>

namespace penstock {

std::uint64_t begin_of_step(const Cursor& cursor, std::uint64_t step) {
  const std::uint64_t end = std::min(cursor.run_end(), kMostPosition);
  const std::uint64_t batches = cursor.steps_before(end);
  if (step >= batches) {
    raise(ErrorKind::InvalidArgument, "step {}: {} {} batches, numbered from 0", with_commas(step),
          cursor.options().epochs ? "the run has" : "below position 2^63 there are", with_commas(batches));
  }
  // The first position after which more than `step` batches have begun.
  std::uint64_t low = 0;
  std::uint64_t high = end - 1;
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (cursor.steps_before(middle + 1) > step) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

}  // namespace penstock
