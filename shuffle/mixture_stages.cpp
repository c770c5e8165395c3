#include "shuffle/mixture_stages.h"

#include "core/base/error.h"
#include "core/job/position.h"
#include "shuffle/permutation.h"

#include <fmt/ranges.h>
#include <boost/container/small_vector.hpp>

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

// ---- how stages are made

MixtureStages::MixtureStages(std::vector<std::string> names, std::vector<std::uint64_t> caps)
    : names_(std::move(names)), caps_(std::move(caps)), given_(names_.size()) {
  for (const std::string& name : names_) keys_.push_back(key_of(name));
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

// By name: that order breaks ties, and does not change when sources are added.
std::vector<std::uint32_t> MixtureStages::sources_by_name(const std::vector<std::uint64_t>& weights) const {
  std::vector<std::uint32_t> sources;
  for (std::uint32_t s = 0; s < weights.size(); ++s) {
    if (weights[s] > 0) sources.push_back(s);
  }
  std::sort(sources.begin(), sources.end(), [&](std::uint32_t a, std::uint32_t b) { return names_[a] < names_[b]; });
  return sources;
}

Strata MixtureStages::strata_of(const MixtureStage& stage) const {
  std::vector<Strata::Member> members;
  for (std::size_t i = 0; i < stage.sources.size(); ++i) {
    members.push_back({stage.weights[i], keys_[stage.sources[i]].absorb(stage.unit)});
  }
  return Strata(std::move(members));
}

std::span<MixtureStage> MixtureStages::add(UnitStretch stretch) {
  const std::size_t first = stages_.size();
  std::uint64_t unit = stretch.begin;
  for (bool is_cut = true; is_cut;) {
    const std::vector<std::uint32_t> wanted = sources_by_name(stretch.weights);
    for (std::size_t s = 0; s < stretch.weights.size(); ++s) {
      if (given_[s] >= caps_[s]) stretch.weights[s] = 0;
    }
    MixtureStage stage;
    stage.sources = sources_by_name(stretch.weights);
    if (stage.sources.empty()) {
      if (unit == stretch.begin) raise_given(stretch.number, wanted);
      end_ = unit;
      break;
    }
    for (const std::uint32_t source : stage.sources) stage.weights.push_back(stretch.weights[source]);
    stage.unit = unit;
    stage.given = given_;
    stage.implied = unit != stretch.begin;
    Strata strata = strata_of(stage);
    for (std::size_t i = 0; i < stage.weights.size(); ++i) stage.weights[i] = strata.members()[i].weight;
    const std::optional<std::uint64_t> cap = first_cap(strata, stage);
    // A cap that is given beyond all positions cuts nothing.
    is_cut = cap && *cap < stretch.end - unit && unit + *cap <= stretch.most;
    if (is_cut || stretch.end != Order::kNever) {
      const std::uint64_t length = is_cut ? *cap : stretch.end - unit;
      std::vector<std::uint64_t> more(stage.sources.size());
      strata.count(length, more);
      for (std::size_t i = 0; i < more.size(); ++i) given_[stage.sources[i]] += more[i];
      unit += length;
    }
    stages_.push_back(std::move(stage));
    strata_.push_back(std::move(strata));
  }
  return std::span(stages_).subspan(first);
}

void MixtureStages::raise_given(std::size_t number, const std::vector<std::uint32_t>& wanted) const {
  std::vector<std::string> names;
  names.reserve(wanted.size());
  for (const std::uint32_t source : wanted) names.push_back(names_[source]);
  raise(ErrorKind::InvalidArgument,
        "stage {}: its sources ({}) have given their caps before it begins: raise the caps, or leave the stage out",
        number, fmt::join(names, ", "));
}

// How many units of the stage there are until the first of its sources has given its cap.
std::optional<std::uint64_t> MixtureStages::first_cap(const Strata& strata, const MixtureStage& stage) const {
  // The last slot of member i, k, lies in [k / w, (k + 1) / w): only those that begin before the first end can be
  // first.
  std::optional<std::size_t> first;
  const auto left = [&](std::size_t i) { return caps_[stage.sources[i]] - stage.given[stage.sources[i]]; };
  const auto is_capped = [&](std::size_t i) { return caps_[stage.sources[i]] != Order::kNever; };
  for (std::size_t i = 0; i < stage.sources.size(); ++i) {
    if (!is_capped(i)) continue;
    if (!first || Wide{left(i)} * stage.weights[*first] < Wide{left(*first)} * stage.weights[i]) first = i;
  }
  if (!first) return std::nullopt;
  std::uint64_t cap = Order::kNever;
  for (std::size_t i = 0; i < stage.sources.size(); ++i) {
    if (!is_capped(i) || Wide{left(i) - 1} * stage.weights[*first] > Wide{left(*first)} * stage.weights[i]) continue;
    // Beyond 2^63 there are no positions, and none of these sums fits.
    if (Wide{left(i)} * strata.total() / stage.weights[i] >= kMostPosition) continue;
    cap = std::min(cap, strata.position_of({left(i) - 1, static_cast<std::uint32_t>(i)}) + 1);
  }
  if (cap == Order::kNever) return std::nullopt;
  return cap;
}

// ---- what they answer

std::size_t MixtureStages::stage_of(std::uint64_t unit) const {
  const auto after = std::upper_bound(stages_.begin(), stages_.end(), unit,
                                      [](std::uint64_t u, const MixtureStage& stage) { return u < stage.unit; });
  return static_cast<std::size_t>(after - stages_.begin()) - 1;
}

void MixtureStages::find(std::uint64_t first, std::uint64_t stride, std::span<MixtureSlot> out) const {
  boost::container::small_vector<Slot, kKernelBlock> slots;
  for (std::size_t done = 0; done < out.size();) {
    const std::uint64_t unit = first + done * stride;
    const std::size_t number = stage_of(unit);
    const MixtureStage& stage = stages_[number];
    const std::uint64_t end = number + 1 < stages_.size() ? stages_[number + 1].unit : Order::kNever;
    const auto count =
        static_cast<std::size_t>(std::min<std::uint64_t>(out.size() - done, (end - 1 - unit) / stride + 1));
    slots.resize(count);
    strata_[number].find(unit - stage.unit, stride, {slots.data(), slots.size()});
    for (const Slot& slot : slots) {
      const std::uint32_t source = stage.sources[slot.member];
      out[done++] = {stage.given[source] + slot.number, source};
    }
  }
}

void MixtureStages::count(std::uint64_t unit, std::span<std::uint64_t> out) const {
  const std::size_t number = stage_of(unit);
  const MixtureStage& stage = stages_[number];
  std::vector<std::uint64_t> more(stage.sources.size());
  strata_[number].count(unit - stage.unit, more);
  std::copy(stage.given.begin(), stage.given.end(), out.begin());
  for (std::size_t i = 0; i < more.size(); ++i) out[stage.sources[i]] += more[i];
}

std::uint64_t MixtureStages::unit_of(std::size_t number, std::uint32_t source, std::uint64_t ordinal) const {
  const MixtureStage& stage = stages_[number];
  const std::uint64_t last = (number + 1 < stages_.size() ? stages_[number + 1].unit : end_) - 1;
  const auto member = std::find(stage.sources.begin(), stage.sources.end(), source);
  if (member == stage.sources.end()) return last;
  const auto i = static_cast<std::size_t>(member - stage.sources.begin());
  const std::uint64_t slot = ordinal - stage.given[source];
  if (Wide{slot} * strata_[number].total() / stage.weights[i] >= kMostPosition - stage.unit) return last;
  return std::min(last, stage.unit + strata_[number].position_of({slot, static_cast<std::uint32_t>(i)}));
}

}  // namespace penstock::shuffle
