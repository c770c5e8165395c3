// Arena: bump allocation for what lives exactly as long as one row: dependent reads' bytes, a source's per-row state.
//
// Addresses stay valid until reset(). reset() keeps the memory, so a recycled row allocates nothing. One thread at a
// time; objects in it must be trivially destructible.
#pragma once

#include "core/base/align.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace penstock {

/// What the arenas of several rows may take together, whatever sizes a file states. Any thread.
class ArenaBound {
 public:
  /// From now on at most `most_bytes`.
  void restart(std::uint64_t most_bytes) noexcept {
    most_bytes_ = most_bytes;
    taken_ = 0;
  }
  /// Counts `bytes` more; false, and nothing counted, if that is too much.
  bool take(std::uint64_t bytes) noexcept;
  [[nodiscard]] std::uint64_t most_bytes() const noexcept { return most_bytes_; }

 private:
  std::uint64_t most_bytes_ = UINT64_MAX;
  std::atomic<std::uint64_t> taken_{0};
};

class Arena {
 public:
  /// What one takes that is not empty.
  static constexpr std::uint64_t kLeastBytes = 512;

  /// `bytes` uninitialised bytes aligned to 16. Throws InvalidArgument where its bound or the system does not allow
  /// more.
  std::byte* allocate(std::uint64_t bytes) {
    const std::uint64_t rounded = align_up(bytes, kAlign);
    if (rounded == 0 || rounded > left_) return allocate_elsewhere(bytes);
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
    std::uint64_t bytes = 0;
    if (__builtin_mul_overflow(count, sizeof(T), &bytes)) bytes = UINT64_MAX;  // which is refused
    T* first = reinterpret_cast<T*>(allocate(bytes));
    for (std::uint64_t i = 0; i < count; ++i) new (first + i) T{};
    return first;
  }

  void reset() noexcept;
  /// reset(), and gives the memory back.
  void release() noexcept;
  /// Memory that it takes from now on counts there; null: nowhere.
  void bound_by(ArenaBound* bound) noexcept { bound_ = bound; }
  /// The most that its bound allows.
  [[nodiscard]] std::uint64_t most_bytes() const noexcept {
    return bound_ == nullptr ? UINT64_MAX : bound_->most_bytes();
  }
  /// Since reset(); with what was left over at the ends of blocks.
  [[nodiscard]] std::uint64_t used_bytes() const noexcept;
  [[nodiscard]] std::uint64_t capacity_bytes() const noexcept { return capacity_bytes_; }

 private:
  static constexpr std::uint64_t kAlign = 16;

  std::byte* allocate_elsewhere(std::uint64_t bytes);
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
  ArenaBound* bound_ = nullptr;
};

}  // namespace penstock
