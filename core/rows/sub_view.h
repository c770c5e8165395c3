// SubView: some observations of another source, numbered anew: a slice of it, those of a table, those that a condition
// chose, a part of a split, or the parts of longer ones.
//
// The source reads; a sub-view only translates numbers, in constant time. Any thread.
#pragma once

#include "core/rows/chosen.h"
#include "core/rows/source.h"
#include "core/rows/split.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace penstock {

/// Observation i is observation first + i * step of the other source, for i below count. `step` may be negative.
struct SliceRange {
  std::uint64_t first = 0;
  std::int64_t step = 1;
  std::uint64_t count = 0;

  [[nodiscard]] std::uint64_t at(std::uint64_t i) const noexcept {
    return first + i * static_cast<std::uint64_t>(step);  // modulo 2^64, so negative steps too
  }
};

/// Observations of `units`, a view or a sub-view, cut into `parts` each, of which those of the whole view are the other
/// source's observations.
struct UnitParts {
  std::shared_ptr<const Source> units;
  std::uint64_t parts = 1;

  [[nodiscard]] std::uint64_t at(std::uint64_t i) const { return units->base_index(i / parts) * parts + i % parts; }
};

class SubView final : public Source {
 public:
  /// Throws InvalidArgument for a step of 0, or a range beyond the source.
  SubView(std::shared_ptr<const Source> base, const SliceRange& range);
  /// Observation i is observation selected[i] of the other source. Throws InvalidArgument for one beyond the source,
  /// and for one that comes twice: an epoch gives each observation once.
  SubView(std::shared_ptr<const Source> base, std::vector<std::uint64_t> selected);
  /// Those of the other source that are chosen, in its order; `said`, a JSON object, is what the view says of the
  /// choice. Throws InvalidArgument unless `chosen` is of as many observations as the source has.
  SubView(std::shared_ptr<const Source> base, std::shared_ptr<const Chosen> chosen, std::string_view said);
  /// A part of the other source's observations. Throws InvalidArgument for one_in below 2.
  SubView(std::shared_ptr<const Source> base, const Split& split);
  /// The other source has the parts of the whole view of `cut.units`. Throws InvalidArgument for no parts, or more
  /// than the other source has.
  SubView(std::shared_ptr<const Source> base, UnitParts cut);

  [[nodiscard]] const SourceInfo& info() const override { return info_; }
  bool plan(Row& row, unsigned round, Parts wanted, Reads& out) const override;
  void spans(const Row& row, SpanTable& out) const override { base_->spans(row, out); }
  [[nodiscard]] std::uint64_t base_index(std::uint64_t index) const override {
    return base_->base_index(number_in_base(index));
  }
  [[nodiscard]] std::int64_t first_record(const Row& row, std::uint64_t index) const override {
    return base_->first_record(row, number_in_base(index));
  }
  [[nodiscard]] Place place_of(std::uint64_t index) const override { return base_->place_of(number_in_base(index)); }

 private:
  struct Selected {
    std::vector<std::uint64_t> numbers;
    [[nodiscard]] std::uint64_t at(std::uint64_t i) const noexcept { return numbers[i]; }
  };
  struct Where {
    std::shared_ptr<const Chosen> chosen;
    [[nodiscard]] std::uint64_t at(std::uint64_t i) const noexcept { return chosen->at(i); }
  };
  using Numbers = std::variant<SliceRange, Selected, Split, UnitParts, Where>;

  SubView(std::shared_ptr<const Source> base, Numbers numbers);
  static unsigned depth_of(const Source& base) noexcept;
  void say(std::uint64_t size, std::string_view name, std::string_view what);
  [[nodiscard]] std::uint64_t number_in_base(std::uint64_t index) const {
    return std::visit([&](const auto& numbers) { return numbers.at(index); }, numbers_);
  }

  const std::shared_ptr<const Source> base_;
  const Numbers numbers_;
  const unsigned depth_;  // sub-views below this one
  SourceInfo info_;
};

}  // namespace penstock
