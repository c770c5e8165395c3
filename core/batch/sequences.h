// Sequences: where the documents of a row begin, found by its spans or by an end-of-document id among its values.
//
// Immutable; any thread. A row's first record always begins one, a row without records is an empty one. In packed rows
// the padding after a piece, up to its multiple, belongs to the piece; that at the end of the row is a sequence of its
// own.
#pragma once

#include "core/base/align.h"
#include "core/base/error.h"
#include "core/batch/column_spec.h"
#include "core/batch/leaf_column.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace penstock {

class Sequences {
 public:
  /// Throws InvalidArgument: as find_leaf; a field of no integers, of sub-arrays, or that cannot hold end_of_document.
  Sequences(const SequenceSpec& spec, const SourceInfo& source);

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
    if (!by_value_) {
      for (const Span& span : row.spans) cut(span.start);
      if (packed_multiple_ > 0 && !row.spans.empty()) cut(align_up(row.spans.back().stop, packed_multiple_));
    } else {
      const std::byte* first = row.records + (apart_ ? offset_bytes_ * row.length : offset_bytes_);
      switch (item_bytes_) {
        case 1: after_each<std::uint8_t>(first, count, cut); break;
        case 2: after_each<std::uint16_t>(first, count, cut); break;
        case 4: after_each<std::uint32_t>(first, count, cut); break;
        default: after_each<std::uint64_t>(first, count, cut); break;
      }
    }
    visit(begin, count);
  }

 private:
  // Few values end a document: blocks without one are passed over by a loop that the compiler makes wide.
  template <typename T, typename Cut>
  void after_each(const std::byte* first, std::uint64_t count, const Cut& cut) const {
    constexpr std::uint64_t kBlock = 64;
    const auto wanted = static_cast<T>(end_of_document_);
    const auto load = [&](std::uint64_t i) {
      T value;
      std::memcpy(&value, first + i * stride_bytes_, sizeof value);
      return value;
    };
    std::uint64_t at = 0;
    if (stride_bytes_ == sizeof(T)) {
      for (; at + kBlock <= count; at += kBlock) {
        std::array<T, kBlock> block;
        std::memcpy(block.data(), first + at * sizeof(T), sizeof block);
        T any = 0;
        for (const T value : block) any |= static_cast<T>(value == wanted);
        if (any == 0) continue;
        for (std::uint64_t i = 0; i < kBlock; ++i) {
          if (block[i] == wanted) cut(at + i + 1);
        }
      }
    }
    for (; at < count; ++at) {
      if (load(at) == wanted) cut(at + 1);
    }
  }

  std::uint64_t shorten_;
  bool by_value_;
  std::int64_t end_of_document_ = 0;
  std::uint32_t item_bytes_ = 0;
  std::uint64_t offset_bytes_ = 0;  // of the value in a record; where fields are apart, of its array for each record
  std::uint64_t stride_bytes_ = 0;
  bool apart_ = false;
  std::uint64_t packed_multiple_ = 0;  // SourceInfo's
};

}  // namespace penstock
