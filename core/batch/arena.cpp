#include "core/batch/arena.h"

#include <algorithm>

namespace penstock {
namespace {
constexpr std::uint64_t kFirstBlock = 512;
}  // namespace

void Arena::enter(std::size_t block) noexcept {
  current_ = block;
  next_ = blocks_[block].memory.get();
  left_ = blocks_[block].bytes;
}

// In a later block, or a new one. Never nullptr, for no bytes either.
std::byte* Arena::allocate_elsewhere(std::uint64_t rounded) {
  while (left_ < rounded && current_ + 1 < blocks_.size()) enter(current_ + 1);
  if (left_ < rounded || blocks_.empty()) {
    // Doubling keeps the number of blocks logarithmic; a row's needs are about the same each time it is reused.
    const std::uint64_t size = std::max({kFirstBlock, capacity_bytes_, rounded});
    blocks_.push_back({std::make_unique_for_overwrite<std::byte[]>(size), size});
    capacity_bytes_ += size;
    enter(blocks_.size() - 1);
  }
  std::byte* result = next_;
  next_ += rounded;
  left_ -= rounded;
  return result;
}

std::uint64_t Arena::used_bytes() const noexcept {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < current_; ++i) bytes += blocks_[i].bytes;
  return blocks_.empty() ? 0 : bytes + blocks_[current_].bytes - left_;
}

void Arena::reset() noexcept {
  if (!blocks_.empty()) enter(0);
}

}  // namespace penstock
