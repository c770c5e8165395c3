#include "layout/reading/kept_blocks.h"

#include "layout/reading/reads.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace penstock::layout {

namespace {

// Of a larger file none is kept: 4 GiB, which are the check values of 4 TiB.
constexpr std::uint64_t kMostBlocks = 1U << 20;

std::uint64_t blocks_of(const File& file) {
  return file.bytes / KeptBlocks::kBlock + (file.bytes % KeptBlocks::kBlock > 0 ? 1 : 0);
}
}  // namespace

KeptBlocks::KeptBlocks(const File& file) : count_(blocks_of(file)) {}

KeptBlocks::KeptBlocks(std::uint64_t begin, std::uint64_t end) noexcept
    : first_(begin / kBlock), count_(end / kBlock + (end % kBlock > 0 ? 1 : 0) - first_) {}

std::uint64_t KeptBlocks::most_bytes(const File& file) noexcept {
  constexpr std::uint64_t kBeside = 40;  // both pointers, and what malloc adds
  const std::uint64_t blocks = blocks_of(file);
  return blocks > kMostBlocks ? UINT64_MAX : file.bytes + blocks * kBeside;
}

KeptBlocks::~KeptBlocks() {
  const std::unique_ptr<Block[]> blocks(blocks_.load());
  for (std::uint64_t i = 0; blocks && i < count_; ++i) delete[] blocks[i].bytes.load();
}

const std::byte* KeptBlocks::block(std::uint64_t i) const noexcept {
  const Block* blocks = blocks_.load(std::memory_order_acquire);
  return blocks == nullptr ? nullptr : blocks[i - first_].bytes.load(std::memory_order_acquire);
}

bool KeptBlocks::is_expected(std::uint64_t offset, std::uint64_t size, const void* group) noexcept {
  Block* const blocks = group == nullptr ? nullptr : make_blocks();
  if (blocks == nullptr) return false;
  bool all = true;
  for (std::uint64_t i = offset / kBlock; i <= (offset + size - 1) / kBlock; ++i) {
    Block& each = blocks[i - first_];
    if (each.group.load(std::memory_order_relaxed) == group) continue;
    each.group.store(group, std::memory_order_relaxed);
    all &= each.bytes.load(std::memory_order_relaxed) != nullptr;
  }
  return all;
}

void KeptBlocks::prefetch(std::uint64_t offset) const noexcept {
  const std::byte* bytes = block(offset / kBlock);
  if (bytes != nullptr) __builtin_prefetch(bytes + offset % kBlock);
}

// Null where there is no memory, or the file is too large.
KeptBlocks::Block* KeptBlocks::make_blocks() noexcept {
  Block* const there = blocks_.load(std::memory_order_acquire);
  if (there != nullptr || count_ > kMostBlocks) return there;
  std::unique_ptr<Block[]> made(new (std::nothrow) Block[count_]{});
  Block* other = nullptr;
  return blocks_.compare_exchange_strong(other, made.get(), std::memory_order_acq_rel) ? made.release() : other;
}

const std::byte* KeptBlocks::find(std::uint64_t offset, std::uint64_t size, std::byte* room) const noexcept {
  const std::uint64_t first = offset / kBlock;
  const std::uint64_t inside = offset % kBlock;
  if (inside + size <= kBlock) {
    const std::byte* bytes = block(first);
    return bytes == nullptr ? nullptr : bytes + inside;
  }
  const std::uint64_t last = (offset + size - 1) / kBlock;
  for (std::uint64_t i = first; i <= last; ++i) {
    if (block(i) == nullptr) return nullptr;
  }
  std::uint64_t skip = inside;
  std::byte* to = room;
  for (std::uint64_t i = first; i <= last; ++i) {
    const std::uint64_t part = std::min(kBlock - skip, size - static_cast<std::uint64_t>(to - room));
    std::memcpy(to, block(i) + skip, part);
    to += part;
    skip = 0;
  }
  return room;
}

bool KeptBlocks::copy_block(std::uint64_t offset, std::uint64_t end, std::byte* to) const noexcept {
  const std::byte* bytes = block(offset / kBlock);
  if (bytes == nullptr) return false;
  std::memcpy(to, bytes, std::min(kBlock, end - offset));
  return true;
}

void KeptBlocks::keep(std::uint64_t offset, std::span<const std::byte> bytes) noexcept {
  Block* const blocks = make_blocks();
  if (blocks == nullptr) return;
  for (std::uint64_t i = offset / kBlock; !bytes.empty(); ++i) {
    const std::span<const std::byte> part = bytes.first(std::min<std::size_t>(kBlock, bytes.size()));
    bytes = bytes.subspan(part.size());
    if (block(i) != nullptr) continue;
    auto* copy = new (std::nothrow) std::byte[part.size()];
    if (copy == nullptr) return;
    std::memcpy(copy, part.data(), part.size());
    const std::byte* none = nullptr;
    if (!blocks[i - first_].bytes.compare_exchange_strong(none, copy, std::memory_order_acq_rel)) delete[] copy;
  }
}

void KeptRange::reserve(Row& row, const File& file, std::uint64_t offset, std::uint64_t bytes) {
  if (bytes <= room_bytes_) return;
  room_ = make_room(row, file, offset, bytes);
  room_bytes_ = bytes;
}

void KeptRange::begin(Row& row, const File& file, KeptBlocks* kept, std::uint64_t offset, std::uint64_t size,
                      Reads& out) {
  check_inside(file, offset, size);
  kept_ = kept;
  fresh_ = false;
  if (kept == nullptr || size == 0) {
    reserve(row, file, offset, std::max<std::uint64_t>(size, 1));  // `bytes` is never null
    bytes = room_;
    return read(file, offset, size, room_, out);
  }
  const bool crosses = offset % kBlock + size > kBlock;
  if (crosses) reserve(row, file, offset, size);
  bytes = kept->find(offset, size, room_);
  if (bytes != nullptr) return;
  // From the first block that is missing to the last one; those around them are copied. Other threads may keep some of
  // them meanwhile, even all.
  const std::uint64_t begin = offset / kBlock * kBlock;
  const std::uint64_t end = std::min((offset + size + kBlock - 1) / kBlock * kBlock, file.bytes);
  reserve(row, file, begin, end - begin);
  bytes = room_ + (offset - begin);
  const auto copy = [&](std::uint64_t at) { return kept->copy_block(at, end, room_ + (at - begin)); };
  std::uint64_t from = begin;
  while (from < end && copy(from)) from += kBlock;
  if (from >= end) return;
  std::uint64_t to = end;
  for (std::uint64_t last = (to - 1) / kBlock * kBlock; last > from && copy(last); last -= kBlock) to = last;
  read(file, from, to - from, room_ + (from - begin), out);
}

void KeptRange::read(const File& file, std::uint64_t offset, std::uint64_t size, std::byte* to, Reads& out) {
  read_offset_ = offset;
  read_bytes_ = size;
  read_to_ = to;
  reading = size > 0;
  plan_read(file, offset, size, to, out);
}

void KeptRange::end() noexcept {
  fresh_ = fresh_ || reading;
  reading = false;
}

void KeptRange::keep() noexcept {
  if (fresh_ && kept_ != nullptr) kept_->keep(read_offset_, std::span(read_to_, read_bytes_));
  fresh_ = false;
}

}  // namespace penstock::layout
