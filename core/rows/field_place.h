// FieldPlace: where the values of a leaf without axes lie among the records of a row.
//
// A value; any thread.
#pragma once

#include "core/rows/source.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace penstock {

struct FieldPlace {
  std::uint32_t item_bytes = 0;
  std::uint64_t stride_bytes = 0;  // from one record's value to the next
  std::uint64_t offset_bytes = 0;  // of the first value from the first record on …
  std::uint64_t apart_bytes = 0;   // … and where fields lie apart, these for each record of the row

  FieldPlace() = default;
  FieldPlace(const Leaf& leaf, const SourceInfo& source)
      : item_bytes(leaf.item_bytes),
        stride_bytes(source.fields_apart ? leaf.item_bytes : source.stored_record_bytes),
        offset_bytes(source.fields_apart ? 0 : leaf.offset_bytes),
        apart_bytes(source.fields_apart ? leaf.offset_bytes : 0) {}

  /// The value of record 0.
  [[nodiscard]] const std::byte* first(const Row& row) const noexcept {
    return row.records + apart_bytes * row.length + offset_bytes;
  }
};

/// Calls `use` with a zero of the unsigned integer type of `item_bytes`: 1, 2, 4 or 8.
template <typename Use>
void with_unsigned(std::uint32_t item_bytes, const Use& use) {
  switch (item_bytes) {
    case 1: return use(std::uint8_t{0});
    case 2: return use(std::uint16_t{0});
    case 4: return use(std::uint32_t{0});
    default: return use(std::uint64_t{0});
  }
}

/// Calls visit(i) for each of `count` values, `stride_bytes` apart from `first` on, that equals `wanted`. Few do:
/// blocks without one are passed over by a loop that the compiler makes wide.
template <typename T, typename Visit>
void for_each_equal(const std::byte* first, std::uint64_t stride_bytes, std::uint64_t count, T wanted,
                    const Visit& visit) {
  constexpr std::uint64_t kBlock = 64;
  const auto load = [&](std::uint64_t i) {
    T value;
    std::memcpy(&value, first + i * stride_bytes, sizeof value);
    return value;
  };
  std::uint64_t at = 0;
  if (stride_bytes == sizeof(T)) {
    for (; at + kBlock <= count; at += kBlock) {
      std::array<T, kBlock> block;
      std::memcpy(block.data(), first + at * sizeof(T), sizeof block);
      T any = 0;
      for (const T value : block) any |= static_cast<T>(value == wanted);
      if (any == 0) continue;
      for (std::uint64_t i = 0; i < kBlock; ++i) {
        if (block[i] == wanted) visit(at + i);
      }
    }
  }
  for (; at < count; ++at) {
    if (load(at) == wanted) visit(at);
  }
}

}  // namespace penstock
