// MixtureStages: which source gives each unit of a stretch of a mixture: one stage of weights, or a ramp's steps, cut
// where sources have given their caps.
//
// A unit is what is weighted, capped and numbered; which positions are of it is MixtureCourses'
// (shuffle/mixture_courses.h). Units of a stage go to its sources by Strata. A source's ordinals go on from stage to
// stage, so that nothing is repeated or lost. Immutable: any thread.
#pragma once

#include "core/job/order.h"
#include "shuffle/key.h"
#include "shuffle/strata.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace penstock::shuffle {

/// What keys of mixtures are for. Part of algorithm 1: never renumbered.
enum MixturePurpose : std::uint64_t { kMixture = 0x6d697874757265, kJitter = 1, kParts };

/// A stage as it came out: one that was asked for, one that an ended source made, or a step of a ramp.
struct MixtureStage {
  std::uint64_t begin = 0;  // position; where it begins inside a group, the group's first one
  Wide begin_tokens = 0;    // that the run has given before it; 0 for documents
  std::uint64_t window = 0;
  std::uint64_t unit = 0;              // its first one
  std::vector<std::uint32_t> sources;  // that have a part in it, by name …
  std::vector<std::uint64_t> weights;  // … and theirs, divided by what divides them all
  std::vector<std::uint64_t> given;    // units before it, by source number
  bool implied = false;
  bool is_step = false;    // a ramp's, after its first
  bool anywhere = false;   // its strata begin anywhere: of a ramp, and of weights that were set, as both may be short
  std::uint64_t ramp = 0;  // positions of the ramp that begins with it; its weights are where that leads
};

/// What stands at a position: part `part`, of `parts`, of unit `ordinal`, counted over the run, of `source`.
struct MixtureSlot {
  std::uint64_t ordinal = 0;
  std::uint32_t source = 0;
  std::uint32_t part = 0;
  std::uint32_t parts = 1;
  std::uint32_t window_number = 0;  // in MixturePlan::windows()

  bool operator==(const MixtureSlot&) const = default;
};

/// The units of a stage that was asked for, whose weights are reached by a ramp or at once.
struct UnitStretch {
  std::size_t number = 0;                // of the list's stage, for errors …
  std::uint64_t set_at = Order::kNever;  // … or the position from which its weights were set
  std::uint64_t begin = 0;
  std::uint64_t end = Order::kNever;
  std::uint64_t most = Order::kNever;       // the last unit that has a position
  std::vector<std::uint64_t> weights = {};  // by source
  std::vector<std::uint64_t> from = {};     // those that a ramp begins at
  std::uint64_t ramp_groups = 0;            // of its units; 0: there is none
  std::uint64_t group = 1;                  // units of a group, in which no step begins

  /// At most kMostRampSteps, of kLeastStep units or more.
  [[nodiscard]] std::uint64_t steps() const;
  /// The first unit of a step, and behind the last one of the weights.
  [[nodiscard]] std::uint64_t step_begin(std::uint64_t step) const;
  /// By source: of the ramp's step, and from the last one on the stretch's.
  [[nodiscard]] std::vector<std::uint64_t> step_weights(std::uint64_t step) const;
  /// Those in force at a unit of the stretch.
  [[nodiscard]] std::vector<std::uint64_t> weights_at(std::uint64_t unit) const;
};

/// What comes out of a stretch.
struct StretchStages {
  std::vector<MixtureStage> stages;   // their positions are not filled in
  std::vector<std::uint64_t> given;   // units by its end, by source; of an endless one nothing
  std::uint64_t end = Order::kNever;  // the unit in it at which no source is left
};

class MixtureStages {
 public:
  /// `names` of the sources, by number. `caps`: most units that each gives in the run; Order::kNever: no cap.
  MixtureStages(std::vector<std::string> names, std::vector<std::uint64_t> caps);

  /// Throws InvalidArgument for weights that are all 0, or too large together.
  static void check_weights(const std::vector<std::uint64_t>& weights, std::size_t number);

  /// One stage and another for each time that sources have given their caps, or a ramp steps; up to the stretch's end,
  /// or to where no source is left. `given`: units before it. Throws InvalidArgument where none of the sources that it
  /// leads to is left as it begins.
  [[nodiscard]] StretchStages stages(const UnitStretch& stretch, std::vector<std::uint64_t> given) const;
  [[nodiscard]] Strata strata_of(const MixtureStage& stage) const;
  [[nodiscard]] bool has_caps() const noexcept { return has_caps_; }
  /// The sources of the weights, by name: that order breaks ties, and does not change when sources are added.
  [[nodiscard]] std::vector<std::uint32_t> sources_by_name(const std::vector<std::uint64_t>& weights) const;

 private:
  [[nodiscard]] bool is_given(std::size_t source, const std::vector<std::uint64_t>& given) const {
    return given[source] >= caps_[source];
  }
  [[nodiscard]] std::size_t count_ended(const UnitStretch& stretch, const std::vector<std::uint64_t>& given) const;
  void check_left(const UnitStretch& stretch, const std::vector<std::uint64_t>& given) const;
  [[nodiscard]] std::optional<std::uint64_t> first_cap(const Strata& strata, const MixtureStage& stage) const;

  std::vector<std::string> names_;
  std::vector<Key> keys_;               // by source
  std::vector<std::uint32_t> by_name_;  // sources
  std::vector<std::uint64_t> caps_;
  bool has_caps_;
};

}  // namespace penstock::shuffle
