#include "core/batch/slab.h"

#include <cstdint>
#include <new>

namespace penstock {
namespace {
constexpr std::uint64_t kPage = 4096;
}

void Slab::ensure(std::uint64_t bytes) {
  if (own_bytes_ >= bytes && own_) return;
  if (bytes > INT64_MAX) throw std::bad_alloc();
  const std::uint64_t rounded = (bytes + kPage) / kPage * kPage;  // never zero
  own_.reset();
  own_bytes_ = 0;
  own_.reset(static_cast<std::byte*>(std::aligned_alloc(kPage, rounded)));
  if (!own_) throw std::bad_alloc();
  own_bytes_ = rounded;
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
