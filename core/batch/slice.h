// Slice: every step-th observation of another source, from one on, numbered anew.
//
// The source reads; a slice only translates numbers, in constant time and memory. Any thread.
#pragma once

#include "core/batch/source.h"

#include <cstdint>
#include <memory>

namespace penstock {

/// Observation i is observation first + i * step of the other source, for i below count. `step` may be negative.
struct SliceRange {
  std::uint64_t first = 0;
  std::int64_t step = 1;
  std::uint64_t count = 0;
};

class Slice final : public Source {
 public:
  /// Throws InvalidArgument for a step of 0, or a range beyond the source.
  Slice(std::shared_ptr<const Source> base, const SliceRange& range);

  [[nodiscard]] const SourceInfo& info() const override { return info_; }
  bool plan(Row& row, unsigned round, Parts wanted, Reads& out) const override;
  void spans(const Row& row, SpanTable& out) const override { base_->spans(row, out); }

 private:
  [[nodiscard]] std::uint64_t base_index(std::uint64_t index) const noexcept {
    return range_.first + index * static_cast<std::uint64_t>(range_.step);  // modulo 2^64, so negative steps too
  }

  const std::shared_ptr<const Source> base_;
  const SliceRange range_;
  SourceInfo info_;
};

}  // namespace penstock
