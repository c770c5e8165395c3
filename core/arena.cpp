#include "core/arena.h"

#include <algorithm>

namespace penstock {
namespace {
constexpr std::uint64_t kAlign = 16;
constexpr std::uint64_t kFirstBlock = 512;
}  // namespace

std::byte* Arena::allocate(std::uint64_t bytes) {
  bytes = (bytes + kAlign - 1) / kAlign * kAlign;
  while (current_ < blocks_.size() && blocks_[current_].bytes - used_ < bytes) {
    ++current_;
    used_ = 0;
  }
  if (current_ == blocks_.size()) {
    // Doubling keeps the number of blocks logarithmic; a row's needs are about the same each time it is reused.
    const std::uint64_t size = std::max({kFirstBlock, capacity_bytes_, bytes});
    blocks_.push_back({std::make_unique_for_overwrite<std::byte[]>(size), size});
    capacity_bytes_ += size;
  }
  std::byte* result = blocks_[current_].memory.get() + used_;
  used_ += bytes;
  return result;
}

void Arena::reset() noexcept {
  current_ = 0;
  used_ = 0;
}

}  // namespace penstock
