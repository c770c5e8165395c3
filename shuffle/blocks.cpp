#include "shuffle/blocks.h"

#include "core/base/error.h"
#include "shuffle/blocks_epoch.h"
#include "shuffle/epoch_run.h"

#include <fmt/format.h>

#include <algorithm>

namespace penstock::shuffle {
namespace {

BlocksShape checked(std::uint64_t size, const BlocksShape& shape) {
  check_order_size("blocks", size);
  if (shape.block == 0 || shape.fetch == 0 || shape.lanes == 0) {
    raise(ErrorKind::InvalidArgument, "order blocks: block {}, fetch {}, lanes {}: wanted at least 1 of each",
          shape.block, shape.fetch, shape.lanes);
  }
  if (shape.fetch % shape.block != 0) {
    raise(ErrorKind::InvalidArgument, "order blocks: a fetch of {}: wanted a multiple of the block, {}", shape.fetch,
          shape.block);
  }
  return shape;
}

}  // namespace

Blocks::Blocks(std::uint64_t size, std::uint64_t seed, BlocksShape shape)
    : size_(size), seed_(seed), shape_(checked(size, shape)), table_(size, shape) {}

void Blocks::pick(std::uint64_t first, std::uint64_t stride, std::span<Pick> out) const {
  std::size_t done = 0;
  while (done < out.size()) {
    const EpochRun run = epoch_run(size_, first + done * stride, stride, out.size() - done);
    const std::span<Pick> picks = out.subspan(done, run.count);
    std::fill(picks.begin(), picks.end(), Pick{0, 0, 0, run.epoch});
    BlocksEpoch(size_, shape_, table_, seed_, run.epoch).pick(run.offset, stride, picks);
    done += run.count;
  }
}

std::uint64_t Blocks::fetch_end(std::uint64_t position) const {
  return fetches_end(size_, shape_.fetch, shape_.lanes, position);
}

std::string Blocks::identity(std::uint64_t) const {
  return fmt::format(R"({{"algorithm":{},"block":{},"fetch":{},"lanes":{},"name":"blocks","seed":{},"size":{}}})",
                     kAlgorithm, shape_.block, shape_.fetch, shape_.lanes, seed_, size_);
}

}  // namespace penstock::shuffle
