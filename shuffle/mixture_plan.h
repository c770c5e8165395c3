// MixturePlan: which source gives what at each position of a mixture: stages of weights, caps, and the run's end.
//
// What is weighted, capped and numbered is a *unit*: an observation of the sources' view, L records. A stage whose
// window is w gives each unit in L / w parts, which are spread over a group of units: a permutation of the group's
// parts says which stands where. Position q of such a stage, with m = L / w and groups of g units, is
//     h, r = divmod(q, g m);  j = permutation[stage, h](r);  unit slot h g + j div m, part j mod m
// and with m = 1 unit slot q. Unit slots go to sources by stages (shuffle/mixture_stages.h). Nothing here depends on
// the loader's seed, so what a mixture gives of each source can be told before it runs. Weights that are set while it
// runs make another plan, which shares all that lies before them. Immutable: any thread.
#pragma once

#include "core/job/order.h"
#include "core/job/steering.h"
#include "shuffle/mixture_courses.h"
#include "shuffle/mixture_stages.h"
#include "shuffle/mixture_tables.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace penstock::shuffle {

class MixturePlan {
 public:
  /// Throws InvalidArgument, which names stage or source, for what cannot be.
  explicit MixturePlan(MixtureSpec spec);
  /// The same list of stages with other weights set, at whole groups. Throws InvalidArgument where their sources have
  /// given their caps. O(what is set after the first difference), and with caps all stages to come.
  [[nodiscard]] std::shared_ptr<const MixturePlan> with(std::shared_ptr<const Steering> steering) const;

  /// out[i] = what stands at first + i * stride. Throws InvalidArgument for positions where no source is left.
  void find(std::uint64_t first, std::uint64_t stride, std::span<MixtureSlot> out) const;
  /// out[s] = observations of source s before `position`. O(S), and one look at each position of a group that is begun.
  void count(std::uint64_t position, std::span<std::uint64_t> out) const;
  /// About the same, in O(S): of a group that is begun each source has given as large a part as of all its sources
  /// together.
  void estimate(std::uint64_t position, std::span<std::uint64_t> out) const;
  /// out[s] = units of source s that have begun by the end of the group of `position`; where units have no parts, up to
  /// that position.
  void count_begun(std::uint64_t position, std::span<std::uint64_t> out) const;
  /// Units that `source` has given before the last one that begins in the group of `position`. Where that is its cap, a
  /// stage without it has begun at or before the group.
  [[nodiscard]] std::uint64_t certain_before(std::uint32_t source, std::uint64_t position) const;
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
  [[nodiscard]] std::uint64_t window_end(std::uint64_t position) const { return courses().window_end(position); }
  /// Sources that have a part in the stage that has `position`; of several in its group, the last one.
  [[nodiscard]] std::vector<std::uint32_t> sources_at(std::uint64_t position) const;
  /// Parts of a unit at `position`.
  [[nodiscard]] std::uint64_t parts_at(std::uint64_t position) const { return courses().at(position).parts; }
  /// The position at which the run has given at least this many tokens.
  [[nodiscard]] std::uint64_t position_of(const MixturePlace& place) const { return courses().position_of(place); }
  /// Tokens that the run has given before `position`.
  [[nodiscard]] Wide tokens_before(std::uint64_t position) const { return courses().tokens_before(position); }

  [[nodiscard]] const MixtureSpec& spec() const noexcept { return courses().spec(); }
  [[nodiscard]] const MixtureCourses& courses() const noexcept { return tables_->courses(); }
  [[nodiscard]] const MixtureStages& rules() const noexcept { return *tables_->rules(); }
  /// The stages as they came out: those asked for, of the list and set, and those that ended sources made. A ramp is
  /// one of them, with the weights that it leads to. Each call goes through all of them.
  [[nodiscard]] std::vector<MixtureStage> stages() const;
  /// Number in stages() of the stage that has `position`.
  [[nodiscard]] std::size_t stage_at(std::uint64_t position) const;
  /// Windows that stages have, the view's first.
  [[nodiscard]] const std::vector<std::uint64_t>& windows() const noexcept { return courses().windows(); }

 private:
  explicit MixturePlan(std::unique_ptr<const MixtureTables> tables);
  void set_end();
  [[nodiscard]] MixtureCourse last_course() const;
  [[nodiscard]] std::uint64_t group_units(const MixtureCourse& course, std::uint64_t group) const;
  [[nodiscard]] std::uint64_t last_unit_of_group(const MixtureCourse& course, std::uint64_t position) const;
  void find_parts(const MixtureCourse& course, std::uint64_t first, std::uint64_t stride,
                  std::span<MixtureSlot> out) const;
  [[nodiscard]] std::uint64_t count_groups(std::uint64_t position, std::span<std::uint64_t> out) const;
  void count_one_by_one(std::uint64_t end, std::uint64_t begun, std::span<std::uint64_t> out) const;
  void fill_in(MixtureStage& stage, const MixtureCourse& course) const;
  [[noreturn]] void raise_over(std::uint64_t position) const;

  std::unique_ptr<const MixtureTables> tables_;
  std::uint64_t last_position_ = Order::kNever;  // where no source is left
  std::uint64_t end_ = Order::kNever;
};

}  // namespace penstock::shuffle
