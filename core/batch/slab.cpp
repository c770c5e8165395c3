#include "core/batch/slab.h"

#include "core/base/align.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <new>

namespace penstock {
namespace {

constexpr std::uint64_t kSlabPage = 4096;
// From this size on memory is mapped, so that it grows with its pages in it, and may be on huge ones.
constexpr std::uint64_t kMapped = std::uint64_t{256} << 10;
constexpr std::uint64_t kHuge = std::uint64_t{4} << 20;

}  // namespace

void Slab::Free::operator()(std::byte* memory) const noexcept {
  if (mapped_bytes > 0) {
    (void)::munmap(memory, mapped_bytes);
  } else {
    std::free(memory);
  }
}

void Slab::ensure(std::uint64_t bytes) {
  if (own_bytes_ >= bytes && own_) return;
  if (bytes > INT64_MAX) throw std::bad_alloc();
  const std::uint64_t rounded = align_up(bytes + 1, kSlabPage);  // never zero
  if (own_ && own_.get_deleter().mapped_bytes > 0) {
    remap(rounded);
  } else {
    own_.reset();
    own_bytes_ = 0;
    allocate(rounded);
  }
  own_bytes_ = rounded;
  if (rounded >= kHuge) (void)::madvise(own_.get(), rounded, MADV_HUGEPAGE);
}

void Slab::allocate(std::uint64_t bytes) {
  if (bytes < kMapped) {
    own_ = {static_cast<std::byte*>(std::aligned_alloc(kSlabPage, bytes)), Free{}};
    if (!own_) throw std::bad_alloc();
    return;
  }
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  own_ = {static_cast<std::byte*>(memory), Free{bytes}};
}

void Slab::remap(std::uint64_t bytes) {
  void* memory = ::mremap(own_.get(), own_bytes_, bytes, MREMAP_MAYMOVE);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  static_cast<void>(own_.release());
  own_ = {static_cast<std::byte*>(memory), Free{bytes}};
}

void Slab::lend(std::byte* data, std::uint64_t bytes, std::shared_ptr<void> owner) noexcept {
  lent_ = data;
  lent_bytes_ = bytes;
  lender_ = std::move(owner);
}

void Slab::release_lent() noexcept {
  lender_.reset();
  lent_ = nullptr;
  lent_bytes_ = 0;
}

}  // namespace penstock
