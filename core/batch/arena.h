// Arena: bump allocation for what lives exactly as long as one row: dependent reads' bytes, a source's per-row state.
//
// Addresses stay valid until reset(). reset() keeps the memory, so a recycled row allocates nothing. One thread at a
// time; objects in it must be trivially destructible.
#pragma once

#include "core/base/align.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace penstock {

class Arena {
 public:
  /// `bytes` uninitialised bytes aligned to 16.
  std::byte* allocate(std::uint64_t bytes) {
    const std::uint64_t rounded = align_up(bytes, kAlign);
    if (rounded == 0 || rounded > left_) return allocate_elsewhere(rounded);
    std::byte* result = next_;
    next_ += rounded;
    left_ -= rounded;
    return result;
  }

  template <typename T, typename... Arguments>
  T* make(Arguments&&... arguments) {
    static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= 16);
    return new (allocate(sizeof(T))) T{std::forward<Arguments>(arguments)...};
  }

  /// `count` value-initialised T.
  template <typename T>
  T* make_array(std::uint64_t count) {
    static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= 16);
    if (count > PTRDIFF_MAX / sizeof(T)) throw std::bad_alloc();
    T* first = reinterpret_cast<T*>(allocate(count * sizeof(T)));
    for (std::uint64_t i = 0; i < count; ++i) new (first + i) T{};
    return first;
  }

  void reset() noexcept;
  /// Since reset(); with what was left over at the ends of blocks.
  [[nodiscard]] std::uint64_t used_bytes() const noexcept;
  [[nodiscard]] std::uint64_t capacity_bytes() const noexcept { return capacity_bytes_; }

 private:
  static constexpr std::uint64_t kAlign = 16;

  std::byte* allocate_elsewhere(std::uint64_t rounded);
  void enter(std::size_t block) noexcept;

  struct Block {
    std::unique_ptr<std::byte[]> memory;
    std::uint64_t bytes;
  };
  std::vector<Block> blocks_;
  std::size_t current_ = 0;    // block being filled …
  std::byte* next_ = nullptr;  // … from here on …
  std::uint64_t left_ = 0;     // … so many bytes
  std::uint64_t capacity_bytes_ = 0;
};

}  // namespace penstock
