#include "shuffle/mixture_stages.h"

#include "core/base/error.h"
#include "core/job/position.h"
#include "shuffle/ramp.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace penstock::shuffle {
namespace {

Key key_of(const std::string& name) {
  Key key = Key().absorb(kMixture).absorb(kJitter).absorb(name.size());
  for (const char c : name) key = key.absorb(static_cast<unsigned char>(c));
  return key;
}

}  // namespace

// ---- a ramp's steps

std::uint64_t UnitStretch::steps() const {
  const Wide units = Wide{ramp_groups} * group;
  const auto most = static_cast<std::uint64_t>(std::clamp<Wide>(units / kLeastStep, 1, kMostRampSteps));
  return std::min(ramp_groups, most);
}

std::uint64_t UnitStretch::step_begin(std::uint64_t step) const {
  if (step == 0) return begin;
  const Wide groups = Wide{ramp_groups} * step / steps();
  return static_cast<std::uint64_t>(std::min<Wide>(begin + groups * group, Order::kNever));
}

std::vector<std::uint64_t> UnitStretch::step_weights(std::uint64_t step) const {
  return step < steps() ? ramp_weights(from, weights, step, steps()) : weights;
}

std::vector<std::uint64_t> UnitStretch::weights_at(std::uint64_t unit) const {
  std::uint64_t low = 0;  // the last step that begins at or before it
  std::uint64_t high = steps();
  while (low < high) {
    const std::uint64_t middle = low + (high - low + 1) / 2;
    if (step_begin(middle) <= unit) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return step_weights(low);
}

// ---- how stages are made

MixtureStages::MixtureStages(std::vector<std::string> names, std::vector<std::uint64_t> caps)
    : names_(std::move(names)),
      by_name_(names_.size()),
      caps_(std::move(caps)),
      has_caps_(std::any_of(caps_.begin(), caps_.end(), [](std::uint64_t cap) { return cap != Order::kNever; })) {
  for (const std::string& name : names_) keys_.push_back(key_of(name));
  std::iota(by_name_.begin(), by_name_.end(), 0U);
  std::sort(by_name_.begin(), by_name_.end(), [&](auto a, auto b) { return names_[a] < names_[b]; });
}

void MixtureStages::check_weights(const std::vector<std::uint64_t>& weights, std::size_t number) {
  std::uint64_t common = 0;
  for (const std::uint64_t weight : weights) common = std::gcd(common, weight);
  if (common == 0) {
    raise(ErrorKind::InvalidArgument, "stage {}: all weights are 0: give at least one source more", number);
  }
  Wide sum = 0;
  for (const std::uint64_t weight : weights) sum += weight / common;
  if (sum >= Strata::kMostWeight) {
    raise(ErrorKind::InvalidArgument, "stage {}: the weights' sum is beyond 2^62: divide them all by one number",
          number);
  }
}

std::vector<std::uint32_t> MixtureStages::sources_by_name(const std::vector<std::uint64_t>& weights) const {
  std::vector<std::uint32_t> sources;
  for (const std::uint32_t s : by_name_) {
    if (weights[s] > 0) sources.push_back(s);
  }
  return sources;
}

Strata MixtureStages::strata_of(const MixtureStage& stage) const {
  std::vector<Strata::Member> members;
  for (std::size_t i = 0; i < stage.sources.size(); ++i) {
    members.push_back({stage.weights[i], keys_[stage.sources[i]].absorb(stage.unit)});
  }
  return Strata(std::move(members), stage.anywhere);
}

// How many of the stretch's sources have given their caps.
std::size_t MixtureStages::count_ended(const UnitStretch& stretch, const std::vector<std::uint64_t>& given) const {
  std::size_t count = 0;
  for (std::size_t s = 0; has_caps_ && s < given.size(); ++s) {
    const bool is_used = stretch.weights[s] > 0 || (stretch.ramp_groups > 0 && stretch.from[s] > 0);
    count += is_used && is_given(s, given) ? 1 : 0;
  }
  return count;
}

void MixtureStages::check_left(const UnitStretch& stretch, const std::vector<std::uint64_t>& given) const {
  std::vector<std::string> wanted;
  for (const std::uint32_t s : sources_by_name(stretch.weights)) {
    if (!is_given(s, given)) return;
    wanted.push_back(names_[s]);
  }
  const std::string sources = fmt::format("{}", fmt::join(wanted, ", "));
  if (stretch.set_at != Order::kNever) {
    raise(ErrorKind::InvalidArgument,
          "the weights set at position {}: their sources ({}) have given their caps: give others a weight too",
          with_commas(stretch.set_at), sources);
  }
  raise(ErrorKind::InvalidArgument,
        "stage {}: its sources ({}) have given their caps before it begins: raise the caps, or leave the stage out",
        stretch.number, sources);
}

StretchStages MixtureStages::stages(const UnitStretch& stretch, std::vector<std::uint64_t> given) const {
  check_left(stretch, given);
  StretchStages out;
  std::size_t ended = count_ended(stretch, given);
  std::uint64_t unit = stretch.begin;
  const std::uint64_t last = stretch.steps();
  for (std::uint64_t step = 0; unit < stretch.end;) {
    const std::uint64_t end = step < last ? std::min(stretch.end, stretch.step_begin(step + 1)) : stretch.end;
    std::vector<std::uint64_t> weights = stretch.step_weights(step);
    for (std::size_t s = 0; s < weights.size(); ++s) {
      if (is_given(s, given)) weights[s] = 0;
    }
    MixtureStage stage;
    stage.sources = sources_by_name(weights);
    if (stage.sources.empty()) {
      out.end = unit;
      break;
    }
    for (const std::uint32_t source : stage.sources) stage.weights.push_back(weights[source]);
    stage.unit = unit;
    stage.given = given;
    const std::size_t now = count_ended(stretch, given);
    stage.implied = now != std::exchange(ended, now);
    stage.is_step = unit != stretch.begin && !stage.implied;
    stage.anywhere = stretch.ramp_groups > 0 || stretch.set_at != Order::kNever;
    const Strata strata = strata_of(stage);
    for (std::size_t i = 0; i < stage.weights.size(); ++i) stage.weights[i] = strata.members()[i].weight;
    const std::optional<std::uint64_t> cap = has_caps_ ? first_cap(strata, stage) : std::nullopt;
    // A cap that is given beyond all positions cuts nothing.
    const bool is_cut = cap && *cap < end - unit && unit + *cap <= stretch.most;
    if (is_cut || end != Order::kNever) {
      const std::uint64_t length = is_cut ? *cap : end - unit;
      std::vector<std::uint64_t> more(stage.sources.size());
      strata.count(length, more);
      for (std::size_t i = 0; i < more.size(); ++i) given[stage.sources[i]] += more[i];
      unit += length;
    } else {
      unit = Order::kNever;
    }
    step += is_cut ? 0 : 1;
    out.stages.push_back(std::move(stage));
  }
  if (stretch.end != Order::kNever && out.end == Order::kNever) out.given = std::move(given);
  return out;
}

// How many units of the stage there are until the first of its sources has given its cap.
std::optional<std::uint64_t> MixtureStages::first_cap(const Strata& strata, const MixtureStage& stage) const {
  // The last slot of member i, k, lies in [k / w, (k + 1) / w): only those that begin before the first end can be
  // first.
  std::optional<std::size_t> first;
  const auto left = [&](std::size_t i) { return caps_[stage.sources[i]] - stage.given[stage.sources[i]]; };
  const auto end = [&](std::size_t i) { return Wide{left(i)} + strata.skipped(i); };
  const auto is_capped = [&](std::size_t i) { return caps_[stage.sources[i]] != Order::kNever; };
  for (std::size_t i = 0; i < stage.sources.size(); ++i) {
    if (!is_capped(i)) continue;
    if (!first || end(i) * stage.weights[*first] < end(*first) * stage.weights[i]) first = i;
  }
  if (!first) return std::nullopt;
  std::uint64_t cap = Order::kNever;
  for (std::size_t i = 0; i < stage.sources.size(); ++i) {
    if (!is_capped(i) || (end(i) - 1) * stage.weights[*first] > end(*first) * stage.weights[i]) continue;
    // Beyond 2^63 there are no positions, and none of these sums fits.
    if (Wide{left(i)} * strata.total() / stage.weights[i] >= kMostPosition) continue;
    cap = std::min(cap, strata.position_of({left(i) - 1, static_cast<std::uint32_t>(i)}) + 1);
  }
  if (cap == Order::kNever) return std::nullopt;
  return cap;
}

}  // namespace penstock::shuffle
