// Sequences: where the documents of a row begin, found by its spans or by an id among its values.
//
// Immutable; any thread. A row's first record always begins one, a row without records is an empty one. In packed rows
// the padding after a piece, up to its multiple, belongs to the piece; that at the end of the row is a sequence of its
// own.
#pragma once

#include "core/base/align.h"
#include "core/base/error.h"
#include "core/columns/column_spec.h"
#include "core/columns/leaf_column.h"
#include "core/rows/field_place.h"

#include <cstddef>
#include <cstdint>

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
      const std::uint64_t more = by_ == DocumentBounds::By::EndValue ? 1 : 0;
      with_unsigned(place_.item_bytes, [&](auto zero) {
        const auto wanted = static_cast<decltype(zero)>(value_);
        for_each_equal(first, place_.stride_bytes, count, wanted, [&](std::uint64_t at) { cut(at + more); });
      });
    }
    visit(begin, count);
  }

 private:
  std::uint64_t shorten_;
  DocumentBounds::By by_;
  std::int64_t value_;
  FieldPlace place_;                   // of the values
  std::uint64_t packed_multiple_ = 0;  // SourceInfo's
};

}  // namespace penstock
