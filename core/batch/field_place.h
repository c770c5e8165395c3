// FieldPlace: where the values of a leaf without axes lie among the records of a row.
//
// A value; any thread.
#pragma once

#include "core/batch/source.h"

#include <cstddef>
#include <cstdint>

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

}  // namespace penstock
