// Arena: bump allocation for what lives exactly as long as one row: dependent reads' bytes, a source's per-row state.
//
// Addresses stay valid until reset(). reset() keeps the memory, so a recycled row allocates nothing. One thread at a
// time; objects in it must be trivially destructible.
#pragma once

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
  std::byte* allocate(std::uint64_t bytes);

  template <typename T, typename... Arguments>
  T* make(Arguments&&... arguments) {
    static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= 16);
    return new (allocate(sizeof(T))) T{std::forward<Arguments>(arguments)...};
  }

  /// `count` value-initialised T.
  template <typename T>
  T* make_array(std::uint64_t count) {
    static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= 16);
    T* first = reinterpret_cast<T*>(allocate(count * sizeof(T)));
    for (std::uint64_t i = 0; i < count; ++i) new (first + i) T{};
    return first;
  }

  void reset() noexcept;
  [[nodiscard]] std::uint64_t capacity_bytes() const noexcept { return capacity_bytes_; }

 private:
  struct Block {
    std::unique_ptr<std::byte[]> memory;
    std::uint64_t bytes;
  };
  std::vector<Block> blocks_;
  std::size_t current_ = 0;  // block being filled
  std::uint64_t used_ = 0;   // bytes used of it
  std::uint64_t capacity_bytes_ = 0;
};

}  // namespace penstock
