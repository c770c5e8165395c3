// Slab: the memory of one batch, page-aligned: our own, or lent by the caller (pinned memory of torch).
//
// Own memory is kept when the slab is recycled and grows only when a batch needs more. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace penstock {

class Slab {
 public:
  /// Own memory of at least `bytes`; contents are undefined. Throws std::bad_alloc.
  void ensure(std::uint64_t bytes);
  /// Uses `bytes` at `data` from now on; `owner` is dropped by release_lent() or the destructor, on whichever thread.
  void lend(std::byte* data, std::uint64_t bytes, std::shared_ptr<void> owner) noexcept;
  void release_lent() noexcept;

  [[nodiscard]] std::byte* data() const noexcept { return lender_ ? lent_ : own_.get(); }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return lender_ ? lent_bytes_ : own_bytes_; }
  [[nodiscard]] const std::shared_ptr<void>& lender() const noexcept { return lender_; }

 private:
  struct Free {
    Free() noexcept : mapped_bytes(0) {}
    explicit Free(std::uint64_t mapped) noexcept : mapped_bytes(mapped) {}
    std::uint64_t mapped_bytes;  // 0: it is of the heap
    void operator()(std::byte* memory) const noexcept;
  };
  void allocate(std::uint64_t bytes);
  void remap(std::uint64_t bytes);

  std::unique_ptr<std::byte, Free> own_;
  std::uint64_t own_bytes_ = 0;
  std::byte* lent_ = nullptr;
  std::uint64_t lent_bytes_ = 0;
  std::shared_ptr<void> lender_;
};

}  // namespace penstock
