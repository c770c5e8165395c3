#include "shuffle/sequential.h"

#include "shuffle/epoch_run.h"

#include <fmt/format.h>

#include <algorithm>

namespace penstock::shuffle {

Sequential::Sequential(std::uint64_t size) : size_(size) {
  check_order_size("sequential", size);
}

void Sequential::pick(std::uint64_t first, std::uint64_t stride, std::span<Pick> out) const {
  std::size_t done = 0;
  while (done < out.size()) {
    const EpochRun run = epoch_run(size_, first + done * stride, stride, out.size() - done);
    const std::uint64_t first_fetch = run.epoch * ((size_ - 1) / kFetch + 1);
    for (std::size_t i = 0; i < run.count; ++i) {
      const std::uint64_t index = run.offset + i * stride;
      out[done + i] = {index, first_fetch + index / kFetch, 0, run.epoch};
    }
    done += run.count;
  }
}

std::uint64_t Sequential::fetch_end(std::uint64_t position) const {
  const std::uint64_t offset = position % size_;
  return position - offset + std::min(size_, (offset / kFetch + 1) * kFetch);
}

std::string Sequential::identity(std::uint64_t) const {
  return fmt::format(R"({{"name":"sequential","size":{}}})", size_);
}

}  // namespace penstock::shuffle
