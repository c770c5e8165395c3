#include "core/rows/arena.h"

#include "core/base/error.h"

#include <algorithm>
#include <new>

namespace penstock {
namespace {

[[noreturn]] void raise_no_memory(std::uint64_t bytes) {
  raise(ErrorKind::InvalidArgument, "no memory for {} bytes of metadata: use a smaller batch size or raise max_bytes",
        with_commas(bytes));
}

// One that asks for so much by itself is told; of many small ones the last says nothing.
[[noreturn]] void raise_beyond(std::uint64_t bytes, const ArenaBound& bound) {
  raise(ErrorKind::InvalidArgument,
        "no memory for the metadata of a batch: its rows need more than the {} bytes that they may have together{}: "
        "use a smaller batch size or raise max_bytes",
        with_commas(bound.most_bytes()),
        bytes > bound.most_bytes() / 2 ? fmt::format(", one of them {} bytes", with_commas(bytes)) : "");
}

}  // namespace

bool ArenaBound::take(std::uint64_t bytes) noexcept {
  std::uint64_t taken = taken_.load(std::memory_order_relaxed);
  do {
    if (bytes > most_bytes_ - std::min(most_bytes_, taken)) return false;
  } while (!taken_.compare_exchange_weak(taken, taken + bytes, std::memory_order_relaxed));
  return true;
}

void Arena::enter(std::size_t block) noexcept {
  current_ = block;
  next_ = blocks_[block].memory.get();
  left_ = blocks_[block].bytes;
}

// In a later block, or a new one. Never nullptr, for no bytes either.
std::byte* Arena::allocate_elsewhere(std::uint64_t bytes) {
  if (bytes > INT64_MAX) {
    if (bound_ != nullptr) raise_beyond(bytes, *bound_);
    raise_no_memory(bytes);
  }
  const std::uint64_t rounded = align_up(bytes, kAlign);
  while (left_ < rounded && current_ + 1 < blocks_.size()) enter(current_ + 1);
  if (left_ < rounded || blocks_.empty()) {
    // Doubling keeps the number of blocks logarithmic; a row's needs are about the same each time it is reused.
    std::uint64_t size = std::max({kLeastBytes, capacity_bytes_, rounded});
    if (bound_ != nullptr && !bound_->take(size)) {
      size = rounded;
      if (!bound_->take(size)) raise_beyond(bytes, *bound_);
    }
    std::unique_ptr<std::byte[]> memory(new (std::nothrow) std::byte[size]);
    if (!memory) raise_no_memory(bytes);
    blocks_.push_back({std::move(memory), size});
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

void Arena::release() noexcept {
  blocks_.clear();
  current_ = 0;
  next_ = nullptr;
  left_ = 0;
  capacity_bytes_ = 0;
}

}  // namespace penstock
