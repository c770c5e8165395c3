// Sequences: where the documents of a row begin, found by its spans or by an id among its values.
//
// Immutable; any thread. A row's first record always begins one, a row without records is an empty one. In packed rows
// the padding after a piece, up to its multiple, belongs to the piece; that at the end of the row is a sequence of its
// own.
#pragma once

#include "core/base/align.h"
#include "core/base/error.h"
#include "core/batch/column_spec.h"
#include "core/batch/field_place.h"
#include "core/batch/leaf_column.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace penstock {

class Sequences {
 public:
  /// Of rows without their `shorten` last records. Throws InvalidArgument: as find_leaf; a field of no integers, of
  /// sub-arrays, or that cannot hold the value.
  Sequences(const DocumentBounds& bounds, std::uint64_t shorten, const SourceInfo& source);

  /// Calls visit(begin, end) for each sequence of the row, in records of the row.
  template <typename Visit>
  void for_each(const Row& row, const Visit& visit) const {
    const std::uint64_t count = row.length - shorten_;
    std::uint64_t begin = 0;
    const auto cut = [&](std::uint64_t at) {
      if (at <= begin || at >= count) return;
      visit(begin, at);
      begin = at;
    };
    if (by_ == DocumentBounds::By::Spans) {
      for (const Span& span : row.spans) cut(span.start);
      if (packed_multiple_ > 0 && !row.spans.empty()) cut(align_up(row.spans.back().stop, packed_multiple_));
    } else {
      const std::byte* const first = place_.first(row);
      with_unsigned(place_.item_bytes, [&](auto zero) { at_each<decltype(zero)>(first, count, cut); });
    }
    visit(begin, count);
  }

 private:
  // Few values bound a document: blocks without one are passed over by a loop that the compiler makes wide.
  template <typename T, typename Cut>
  void at_each(const std::byte* first, std::uint64_t count, const Cut& cut) const {
    constexpr std::uint64_t kBlock = 64;
    const auto wanted = static_cast<T>(value_);
    const std::uint64_t more = by_ == DocumentBounds::By::EndValue ? 1 : 0;
    const auto load = [&](std::uint64_t i) {
      T value;
      std::memcpy(&value, first + i * place_.stride_bytes, sizeof value);
      return value;
    };
    std::uint64_t at = 0;
    if (place_.stride_bytes == sizeof(T)) {
      for (; at + kBlock <= count; at += kBlock) {
        std::array<T, kBlock> block;
        std::memcpy(block.data(), first + at * sizeof(T), sizeof block);
        T any = 0;
        for (const T value : block) any |= static_cast<T>(value == wanted);
        if (any == 0) continue;
        for (std::uint64_t i = 0; i < kBlock; ++i) {
          if (block[i] == wanted) cut(at + i + more);
        }
      }
    }
    for (; at < count; ++at) {
      if (load(at) == wanted) cut(at + more);
    }
  }

  std::uint64_t shorten_;
  DocumentBounds::By by_;
  std::int64_t value_;
  FieldPlace place_;                   // of the values
  std::uint64_t packed_multiple_ = 0;  // SourceInfo's
};

}  // namespace penstock
