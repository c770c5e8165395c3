#include "shuffle/sequential.h"

#include "shuffle/epoch_run.h"

#include <fmt/format.h>

namespace penstock::shuffle {

Sequential::Sequential(std::uint64_t size) : size_(size) {
  check_order_size("sequential", size);
}

void Sequential::pick(std::uint64_t first, std::uint64_t stride, std::span<Pick> out) const {
  std::size_t done = 0;
  while (done < out.size()) {
    const EpochRun run = epoch_run(size_, first + done * stride, stride, out.size() - done);
    for (std::size_t i = 0; i < run.count; ++i) out[done + i] = {run.offset + i * stride, 0, run.epoch};
    done += run.count;
  }
}

std::string Sequential::identity(std::uint64_t) const {
  return fmt::format(R"({{"name":"sequential","size":{}}})", size_);
}

}  // namespace penstock::shuffle
