#include "shuffle/epoch_run.h"

#include "core/base/error.h"
#include "shuffle/permutation.h"

#include <algorithm>

namespace penstock::shuffle {

EpochRun epoch_run(std::uint64_t size, std::uint64_t position, std::uint64_t stride, std::size_t wanted) {
  if (stride == 0) raise(ErrorKind::InvalidArgument, "positions with stride 0: wanted at least 1");
  const std::uint64_t epoch = position / size;
  if (epoch > UINT32_MAX) {
    raise(ErrorKind::InvalidArgument, "position {} of an order of {}: epoch {} is beyond 2^32 - 1",
          with_commas(position), with_commas(size), with_commas(epoch));
  }
  const std::uint64_t offset = position % size;
  const std::uint64_t left = (size - 1 - offset) / stride + 1;
  return {static_cast<std::uint32_t>(epoch), offset, static_cast<std::size_t>(std::min<std::uint64_t>(wanted, left))};
}

std::uint64_t fetches_end(std::uint64_t size, std::uint64_t fetch, std::uint64_t lanes, std::uint64_t position) {
  const std::uint64_t offset = position % size;
  // fetch * lanes may not fit 64 bits.
  const std::uint64_t together = fetch >= size / lanes ? size : fetch * lanes;
  const std::uint64_t begin = offset / together * together;
  return position - offset + begin + std::min(together, size - begin);
}

void check_order_size(const char* order, std::uint64_t size) {
  if (size >= 1 && size <= kMaxSize) return;
  raise(ErrorKind::InvalidArgument, "order {} of {} observations: wanted 1 to 2^52 = {}", order, with_commas(size),
        with_commas(kMaxSize));
}

}  // namespace penstock::shuffle
