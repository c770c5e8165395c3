// MixtureStages: which source gives each unit of a mixture: stages of weights, cut where sources have given their caps.
//
// A unit is what is weighted, capped and numbered; which positions are of it is MixturePlan's (shuffle/mixture_plan.h).
// Units of a stage go to its sources by Strata. A source's ordinals go on from stage to stage, so that nothing is
// repeated or lost. Stages are added in order; after that immutable: any thread.
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

/// A stage as it came out: one that was asked for, or one that an ended source made.
struct MixtureStage {
  std::uint64_t begin = 0;  // position; where it begins inside a group, the group's first one
  Wide begin_tokens = 0;    // that the run has given before it; 0 for documents
  std::uint64_t window = 0;
  std::uint64_t unit = 0;              // its first one
  std::vector<std::uint32_t> sources;  // that have a part in it, by name …
  std::vector<std::uint64_t> weights;  // … and theirs, divided by what divides them all
  std::vector<std::uint64_t> given;    // units before it, by source number
  bool implied = false;
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

/// The units of a stage that was asked for.
struct UnitStretch {
  std::size_t number = 0;  // of the stage, for errors
  std::uint64_t begin = 0;
  std::uint64_t end = Order::kNever;
  std::uint64_t most = Order::kNever;  // the last unit that has a position
  std::vector<std::uint64_t> weights;  // by source
};

class MixtureStages {
 public:
  /// `names` of the sources, by number. `caps`: most units that each gives in the run; Order::kNever: no cap.
  MixtureStages(std::vector<std::string> names, std::vector<std::uint64_t> caps);

  /// Throws InvalidArgument for weights that are all 0, or too large together.
  static void check_weights(const std::vector<std::uint64_t>& weights, std::size_t number);

  /// Adds the stages that come out of a stretch, which begins where the one before ended: one, and another for each
  /// time that sources have given their caps; up to the stretch's end, or to end(). Returns them: their positions are
  /// the caller's to fill in. Throws InvalidArgument where no source is left as it begins.
  std::span<MixtureStage> add(UnitStretch stretch);

  [[nodiscard]] const std::vector<MixtureStage>& all() const noexcept { return stages_; }
  /// The unit at which no source is left, or Order::kNever.
  [[nodiscard]] std::uint64_t end() const noexcept { return end_; }

  /// out[i] = unit first + i * stride, which is before end(); in one part.
  void find(std::uint64_t first, std::uint64_t stride, std::span<MixtureSlot> out) const;
  /// out[s] = units of source s before `unit`.
  void count(std::uint64_t unit, std::span<std::uint64_t> out) const;
  /// Which unit of stage `number` is unit `ordinal` of a source; the stage's last one, where that does not come in it.
  [[nodiscard]] std::uint64_t unit_of(std::size_t number, std::uint32_t source, std::uint64_t ordinal) const;

 private:
  [[nodiscard]] std::vector<std::uint32_t> sources_by_name(const std::vector<std::uint64_t>& weights) const;
  [[nodiscard]] Strata strata_of(const MixtureStage& stage) const;
  [[nodiscard]] std::optional<std::uint64_t> first_cap(const Strata& strata, const MixtureStage& stage) const;
  [[nodiscard]] std::size_t stage_of(std::uint64_t unit) const;
  [[noreturn]] void raise_given(std::size_t number, const std::vector<std::uint32_t>& wanted) const;

  std::vector<std::string> names_;
  std::vector<Key> keys_;  // by source
  std::vector<std::uint64_t> caps_;
  std::vector<std::uint64_t> given_;  // by the stages so far, by source
  std::vector<MixtureStage> stages_;
  std::vector<Strata> strata_;  // of stages_
  std::uint64_t end_ = Order::kNever;
};

}  // namespace penstock::shuffle
