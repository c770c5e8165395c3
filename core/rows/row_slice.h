// RowSlice: the part of each row that one of several context-parallel ranks gets: 1/n of its records, in chunks.
//
// Contiguous: records [r/n, (r+1)/n) of the row. Zigzag: chunks r and 2n-1-r of 2n, so that causal attention costs all
// ranks alike. By documents: those two chunks of each document of a packed row, with its padding, and of what is left
// at the end of the row. The slices of all ranks are the row. Immutable; any thread.
#pragma once

#include "core/base/align.h"
#include "core/rows/source.h"

#include <algorithm>
#include <cstdint>
#include <string>

namespace penstock {

class RowSlice {
 public:
  enum class Layout { Contiguous, Zigzag, ZigzagDocuments };
  struct Spec {
    std::uint64_t rank = 0;
    std::uint64_t size = 1;
    Layout layout = Layout::Zigzag;
  };

  /// Of rows of `source`, whose last `lookahead` records are no part of the row itself. Throws InvalidArgument: a rank
  /// that is not below the size; ragged rows; a window, or the multiple of packed documents, that is no multiple of the
  /// chunks.
  RowSlice(const Spec& spec, const SourceInfo& source, std::uint64_t lookahead);

  /// The same slice, of which `records` after each chunk are read, too: columns are made of them. Else none are.
  [[nodiscard]] RowSlice reading_after(std::uint64_t records) const;

  /// Of the slice.
  [[nodiscard]] std::uint64_t records() const noexcept { return window_ / spec_.size; }
  [[nodiscard]] bool is_by_documents() const noexcept { return spec_.layout == Layout::ZigzagDocuments; }
  [[nodiscard]] const Spec& spec() const noexcept { return spec_; }

  /// Calls visit(begin, end) for each part of a row that has these spans, in the order of the slice.
  template <typename Visit>
  void for_each(const SpanTable& spans, Visit&& visit) const {
    std::uint64_t begin = 0;
    if (is_by_documents() && !spans.empty()) {
      const auto cut = [&](std::uint64_t at) {
        if (at <= begin || at >= window_) return;
        chunks(begin, at, visit);
        begin = at;
      };
      for (const Span& span : spans) cut(span.start);
      cut(align_up(spans.back().stop, multiple_));
    }
    chunks(begin, window_, visit);
  }

  /// Calls visit(from, to), which rise, for what is to be read of records [begin, end) of a row: the slice, and what
  /// reading_after() says. In packed rows [begin, end) are of one document, whose first record is no target.
  template <typename Visit>
  void for_each_read(std::uint64_t begin, std::uint64_t end, const Visit& visit) const {
    std::uint64_t done = begin;
    const auto chunk = [&](std::uint64_t first, std::uint64_t stop) {
      const std::uint64_t from = std::max(first, done);
      const std::uint64_t to = std::min(stop + after_, end);
      if (from >= to || (is_packed_ && from >= stop)) return;
      visit(from, to);
      done = to;
    };
    if (is_by_documents()) {
      chunks(begin, begin + align_up(end - begin, multiple_), chunk);
    } else {
      chunks(0, window_, chunk);
    }
  }

 private:
  // The rank's part of records [begin, end).
  template <typename Visit>
  void chunks(std::uint64_t begin, std::uint64_t end, Visit&& visit) const {
    const auto [rank, size, layout] = spec_;
    if (layout == Layout::Contiguous) {
      const std::uint64_t chunk = (end - begin) / size;
      return visit(begin + rank * chunk, begin + (rank + 1) * chunk);
    }
    const std::uint64_t chunk = (end - begin) / (2 * size);
    const std::uint64_t second = 2 * size - 1 - rank;
    if (second == rank + 1) return visit(begin + rank * chunk, begin + (rank + 2) * chunk);
    visit(begin + rank * chunk, begin + (rank + 1) * chunk);
    visit(begin + second * chunk, begin + (second + 1) * chunk);
  }

  Spec spec_;
  std::uint64_t window_;
  std::uint64_t after_ = 0;     // records after a chunk that are read, too
  std::uint64_t multiple_ = 1;  // that each packed document takes
  bool is_packed_;
};

}  // namespace penstock
