// MixtureCourses: the stages of a mixture as they were asked for, by positions: its list, and between those the weights
// that were set while it ran.
//
// A course has one window, and begins where every source has given whole units: at whole groups of the course before.
// Weights that are set begin a course of the window in force; so the windows of positions, and where the courses of the
// list begin, never change. Immutable: any thread.
#pragma once

#include "core/job/order.h"
#include "core/job/steering.h"
#include "shuffle/mixture_stages.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace penstock::shuffle {

/// Where something begins, or how long it is: positions, or what the run has given by then in tokens (records without
/// lookahead).
struct MixturePlace {
  std::uint64_t value = 0;
  bool in_tokens = false;
};

struct MixtureStageSpec {
  MixturePlace at;
  std::uint64_t window = 0;               // of its observations; 0: the view's
  std::vector<std::uint64_t> weights;     // by source
  std::optional<MixturePlace> ramp = {};  // how long its shares take to come about; none: they do at once
};

struct MixtureSpec {
  std::vector<std::string> names;   // of the sources, by number
  std::vector<std::uint64_t> caps;  // most units that each gives in the run; Order::kNever: no cap
  std::vector<MixtureStageSpec> stages;
  std::uint64_t window = 0;  // L; 0: documents
  std::uint64_t group = 1;   // units
  std::optional<MixturePlace> end;
  bool are_packed = false;         // a stage's sources have rows of its window: units are not cut into windows …
  std::size_t of_each_length = 0;  // … and of each length there are so many sources, in one order; 0: all have one
};

/// A stage that was asked for: how its positions are units.
struct MixtureCourse {
  std::size_t number = 0;            // of the list's stage that it is, or is within
  std::optional<std::size_t> entry;  // of the weights that were set, and begin it
  std::uint64_t begin = 0;
  Wide begin_tokens = 0;
  std::uint64_t unit = 0;
  std::uint64_t window = 0;
  std::uint64_t parts = 1;
  std::uint64_t ramp = 0;  // positions
  std::uint32_t window_number = 0;

  /// The position at which the group of a unit of the course begins; beyond all positions for some.
  [[nodiscard]] Wide group_begin(std::uint64_t of_unit, std::uint64_t group) const {
    const std::uint64_t past = of_unit - unit;
    return Wide{begin} + (parts > 1 ? Wide{past / group} * Wide{group} * parts : Wide{past});
  }
};

class MixtureCourses {
 public:
  /// Throws InvalidArgument, which names the stage, for what cannot be.
  explicit MixtureCourses(std::shared_ptr<const MixtureSpec> spec);
  /// The same list with these weights set: entries at whole groups (see begin_of_change), of the spec's sources, of
  /// which the first `same` are set already. Throws InvalidArgument for weights of rows of another length than stages
  /// have where they begin.
  [[nodiscard]] MixtureCourses with(std::shared_ptr<const Steering> steering, std::size_t same = 0) const;

  [[nodiscard]] const MixtureSpec& spec() const noexcept { return *spec_; }
  [[nodiscard]] const Steering* steering() const noexcept { return steering_.get(); }
  /// Of the list, in order.
  [[nodiscard]] const std::vector<MixtureCourse>& list() const noexcept { return *list_; }
  /// Windows that stages have, the view's first.
  [[nodiscard]] const std::vector<std::uint64_t>& windows() const noexcept { return windows_; }

  [[nodiscard]] MixtureCourse at(std::uint64_t position) const;
  /// That has a unit.
  [[nodiscard]] MixtureCourse of_unit(std::uint64_t unit) const;
  /// The one after a course, if there is one.
  [[nodiscard]] std::optional<MixtureCourse> next(const MixtureCourse& course) const;
  /// Its units and weights.
  [[nodiscard]] UnitStretch stretch(const MixtureCourse& course) const;
  /// By source.
  [[nodiscard]] std::vector<std::uint64_t> weights(const MixtureCourse& course) const;

  /// Where weights begin that are set at a position: there, or at the next whole group.
  [[nodiscard]] std::uint64_t begin_of_change(std::uint64_t position) const;
  /// First position after `position` where the window changes, or kNever.
  [[nodiscard]] std::uint64_t window_end(std::uint64_t position) const;
  /// The position at which the run has given at least this many tokens.
  [[nodiscard]] std::uint64_t position_of(const MixturePlace& place) const;
  /// Tokens that the run has given before `position`.
  [[nodiscard]] Wide tokens_before(std::uint64_t position) const;

 private:
  // Of a stage of the list that has a ramp, where no weights are set: the weights that it leads from, and the begin of
  // the first stage that they follow from, as a ramp that is cut leads on from one of its steps.
  struct RampBegin {
    std::vector<std::uint64_t> from;
    std::uint64_t since = 0;
  };

  void add(const MixtureStageSpec& stage, std::size_t number, std::vector<MixtureCourse>& list);
  void set_ramp(const MixtureStageSpec& stage, MixtureCourse& course) const;
  void note_ramp(const std::vector<MixtureCourse>& list, std::vector<RampBegin>& ramps) const;
  void check_length(const Steering& steering, std::size_t entry) const;
  [[nodiscard]] std::size_t length_of(const std::vector<std::uint64_t>& weights) const;
  [[nodiscard]] UnitStretch ramp_of(const MixtureCourse& course, std::vector<std::uint64_t> from) const;
  [[nodiscard]] std::vector<std::uint64_t> weights_before(const MixtureCourse& course) const;
  [[nodiscard]] std::uint64_t rounded(const MixtureCourse& course, const MixturePlace& place) const;
  [[nodiscard]] std::uint64_t most_unit(const MixtureCourse& course) const;
  [[nodiscard]] const MixtureCourse& listed_at(std::uint64_t position) const;
  [[nodiscard]] MixtureCourse change(std::size_t entry) const;

  std::shared_ptr<const MixtureSpec> spec_;
  std::shared_ptr<const std::vector<MixtureCourse>> list_;
  std::shared_ptr<const std::vector<RampBegin>> ramps_;  // by the list's stages
  std::vector<std::uint64_t> windows_;
  std::shared_ptr<const Steering> steering_;  // null: nothing was set
};

}  // namespace penstock::shuffle
