// MixturePlan: which source gives what at each position of a mixture: stages of weights, caps, and the run's end.
//
// What is weighted, capped and numbered is a *unit*: an observation of the sources' view, L records. A stage whose
// window is w gives each unit in L / w parts, which are spread over a group of units: a permutation of the group's
// parts says which stands where. Position q of such a stage, with m = L / w and groups of g units, is
//     h, r = divmod(q, g m);  j = permutation[stage, h](r);  unit slot h g + j div m, part j mod m
// and with m = 1 unit slot q. Unit slots go to sources by stages (shuffle/mixture_stages.h). Nothing here depends on
// the loader's seed, so what a mixture gives of each source can be told before it runs. Immutable: any thread.
#pragma once

#include "core/job/order.h"
#include "shuffle/mixture_stages.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace penstock::shuffle {

/// Where something begins: a position, or what the run has given by then in tokens (records without lookahead).
struct MixturePlace {
  std::uint64_t value = 0;
  bool in_tokens = false;
};

struct MixtureStageSpec {
  MixturePlace at;
  std::uint64_t window = 0;            // of its observations; 0: the view's
  std::vector<std::uint64_t> weights;  // by source
};

struct MixtureSpec {
  std::vector<std::string> names;   // of the sources, by number
  std::vector<std::uint64_t> caps;  // most units that each gives in the run; Order::kNever: no cap
  std::vector<MixtureStageSpec> stages;
  std::uint64_t window = 0;  // L; 0: documents
  std::uint64_t group = 1;   // units
  std::optional<MixturePlace> end;
  bool are_packed = false;  // a stage's sources have rows of its window: units are not cut into windows
};

class MixturePlan {
 public:
  /// Throws InvalidArgument, which names stage or source, for what cannot be.
  explicit MixturePlan(MixtureSpec spec);

  /// out[i] = what stands at first + i * stride. Throws InvalidArgument for positions where no source is left.
  void find(std::uint64_t first, std::uint64_t stride, std::span<MixtureSlot> out) const;
  /// out[s] = observations of source s before `position`. O(S), and one look at each position of a group that is begun.
  void count(std::uint64_t position, std::span<std::uint64_t> out) const;
  /// out[s] = units of source s that have begun by the end of the group of `position`; where units have no parts, up to
  /// that position.
  void count_begun(std::uint64_t position, std::span<std::uint64_t> out) const;
  /// The end of the group of `position`; where units have no parts, the next position.
  [[nodiscard]] std::uint64_t group_end(std::uint64_t position) const;
  /// The first position after a unit of a source in the stage that has `position`, and after its group; that stage's
  /// end where it has no such unit.
  [[nodiscard]] std::uint64_t unit_end(std::uint64_t position, std::uint32_t source, std::uint64_t ordinal) const;

  /// The position of the run's last group, where no source is left to make it a whole one: what stands where in it
  /// depends on where it ends, last_position(). kNever where there is none.
  [[nodiscard]] std::uint64_t short_group() const;
  /// Where no source is left, or kNever.
  [[nodiscard]] std::uint64_t last_position() const noexcept { return last_position_; }
  /// Where the run ends: the spec's end or where no source is left; kNever for an endless one.
  [[nodiscard]] std::uint64_t end() const noexcept { return end_; }
  /// First position after `position` where the window changes, or kNever.
  [[nodiscard]] std::uint64_t window_end(std::uint64_t position) const;
  /// Number in stages() of the stage that has `position`.
  [[nodiscard]] std::size_t stage_at(std::uint64_t position) const;
  /// Parts of a unit at `position`.
  [[nodiscard]] std::uint64_t parts_at(std::uint64_t position) const { return course_at(position).parts; }
  /// The position at which the run has given at least this many tokens.
  [[nodiscard]] std::uint64_t position_of(const MixturePlace& place) const;
  /// Tokens that the run has given before `position`.
  [[nodiscard]] Wide tokens_before(std::uint64_t position) const;

  [[nodiscard]] const MixtureSpec& spec() const noexcept { return spec_; }
  [[nodiscard]] const std::vector<MixtureStage>& stages() const noexcept { return stages_.all(); }
  /// Windows that stages have, the view's first.
  [[nodiscard]] const std::vector<std::uint64_t>& windows() const noexcept { return windows_; }

 private:
  /// A stage that was asked for: how its positions are units.
  struct Course {
    std::uint64_t begin = 0;
    Wide begin_tokens = 0;
    std::uint64_t unit = 0;
    std::uint64_t window = 0;
    std::uint64_t parts = 1;
    std::uint32_t window_number = 0;

    /// The position of the group that has a unit; where units have no parts, of the unit.
    [[nodiscard]] Wide group_begin(std::uint64_t of_unit, std::uint64_t group) const {
      const std::uint64_t past = of_unit - unit;
      return Wide{begin} + (parts > 1 ? Wide{past / group} * Wide{group} * parts : Wide{past});
    }
  };
  void add_course(const MixtureStageSpec& stage, std::size_t number);
  void add_stages(std::size_t number);
  [[nodiscard]] std::uint64_t most_unit(const Course& course) const;
  [[nodiscard]] std::uint64_t rounded(const Course& course, const MixturePlace& place) const;
  [[nodiscard]] std::uint64_t group_units(const Course& course, std::uint64_t group) const;
  [[nodiscard]] const Course& course_at(std::uint64_t position) const;
  void find_parts(const Course& course, std::uint64_t first, std::uint64_t stride, std::span<MixtureSlot> out) const;
  [[noreturn]] void raise_over(std::uint64_t position) const;

  MixtureSpec spec_;
  std::vector<std::uint64_t> windows_;
  std::vector<Course> courses_;
  MixtureStages stages_;
  std::uint64_t last_position_ = Order::kNever;  // where no source is left
  std::uint64_t end_ = Order::kNever;
};

}  // namespace penstock::shuffle
