// What a mixture says of itself, and how it differs from a saved one.
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/job/position.h"
#include "core/job/saved_json.h"
#include "shuffle/mixture.h"
#include "shuffle/mixture_difference.h"
#include "shuffle/permutation.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

namespace penstock::shuffle {
namespace {

using nlohmann::json;

// A stage with the sources that have a part in it, by name.
json stage_entry(const MixtureStage& stage, const MixtureSpec& spec) {
  json entry = {{"begin", stage.begin}, {"sources", json::array()}, {"weights", stage.weights}};
  for (const std::uint32_t source : stage.sources) entry["sources"].push_back(spec.names[source]);
  if (stage.unit != stage.begin) entry["unit"] = stage.unit;
  if (stage.window != spec.window) {
    entry["window"] = stage.window;
    if (!spec.are_packed) entry["group"] = spec.group;
  }
  if (stage.ramp > 0) entry["ramp"] = stage.ramp;
  return entry;
}

// A stage of the list as it was asked for.
MixtureStage asked_stage(const MixtureCourse& course, const MixturePlan& plan) {
  MixtureStage stage;
  stage.begin = course.begin;
  stage.unit = course.unit;
  stage.window = course.window;
  stage.ramp = course.ramp;
  const std::vector<std::uint64_t>& weights = plan.spec().stages[course.number].weights;
  std::uint64_t common = 0;
  for (const std::uint64_t weight : weights) common = std::gcd(common, weight);
  stage.sources = plan.rules().sources_by_name(weights);
  for (const std::uint32_t source : stage.sources) stage.weights.push_back(weights[source] / common);
  return stage;
}

// The list as it was asked for, up to `end`.
json asked_stages(const MixturePlan& plan, std::uint64_t end) {
  json stages = json::array();
  for (const MixtureCourse& course : plan.courses().list()) {
    if (course.begin < end) stages.push_back(stage_entry(asked_stage(course, plan), plan.spec()));
  }
  return stages;
}

// With ramps, and where units have parts, rows behind a cap depend on the caps and on the list, which stages as they
// came out do not tell.
bool depends_on_list(const MixturePlan& plan, std::uint64_t end) {
  const std::vector<MixtureCourse>& list = plan.courses().list();
  return std::any_of(list.begin(), list.end(), [&](const MixtureCourse& course) {
    return course.begin < end && (course.ramp > 0 || course.parts > 1);
  });
}

json caps_by_name(const MixtureSpec& spec) {
  json caps = json::object();
  for (std::size_t s = 0; s < spec.caps.size(); ++s) {
    if (spec.caps[s] != Order::kNever) caps[spec.names[s]] = spec.caps[s];
  }
  return caps;
}

// Units of a source that are certain by `position`: all but the last one of the group before it. One that has given its
// cap by then has left at a position before `position`, as identities count it.
std::uint64_t given_for_certain(const MixturePlan& plan, std::uint32_t source, std::uint64_t position) {
  if (position == 0) return 0;
  return plan.certain_before(source, std::min(position, plan.last_position()) - 1);
}

}  // namespace

std::string Mixture::identity(std::uint64_t position) const {
  std::string text = identity_of_list(position);
  if (!steering_ || steering_->size() == 0) return text;
  constexpr std::string_view kEnd = "]}}";
  text.resize(text.size() - kEnd.size());
  steering_->append_text(steering_->count_before(std::max<std::uint64_t>(position, 1)), text);
  return text += kEnd;
}

// A steered mixture has the list as it was asked for. Others have the stages as they came out, and where these do not
// say all, the list too. Orders are those of the sources that were met; of a steered one all, since any may be set.
std::string Mixture::identity_of_list(std::uint64_t position) const {
  const MixtureSpec& spec = plan_->spec();
  const std::uint64_t end = std::min(std::max<std::uint64_t>(position, 1), steering_ ? kMostPosition : plan_->end());
  json root = {{"algorithm", kAlgorithm}, {"name", "mixture"}, {"orders", json::object()}, {"seed", seed_}};
  json& orders = root["orders"];
  const auto add_order = [&](std::uint32_t source) {
    const std::string& name = spec.names[source];
    if (!orders.contains(name)) orders[name] = json::parse(orders_[source]->identity(Order::kNever));
  };
  if (steering_) {
    for (std::uint32_t source = 0; source < spec.names.size(); ++source) add_order(source);
    root["caps"] = caps_by_name(spec);
    root["steered"] = {{"names", spec.names}, {"stages", json::array()}};
    root["stages"] = asked_stages(*plan_, end);
    return root.dump();
  }
  json stages = json::array();
  for (const MixtureStage& stage : plan_->stages()) {
    if (stage.begin >= end) break;
    for (const std::uint32_t source : stage.sources) add_order(source);
    stages.push_back(stage_entry(stage, spec));
  }
  // What stands where in a short group depends on where it ends; an entry of its own, so that it begins with the group.
  const std::uint64_t group = plan_->short_group();
  if (group < end) {
    stages.push_back({{"begin", group},
                      {"end", plan_->last_position()},
                      {"sources", json::array()},
                      {"weights", json::array()},
                      {"window", plan_->courses().at(group).window}});
  }
  root["stages"] = std::move(stages);
  if (depends_on_list(*plan_, end)) {
    root["asked"] = {{"caps", caps_by_name(spec)}, {"stages", asked_stages(*plan_, end)}};
  }
  return root.dump();
}

// ---- differences

SourceKeys Mixture::sources_set_before(std::uint64_t position) const {
  std::vector<bool> used(steering_->names().size());
  for (std::size_t i = 0; i < steering_->count_before(position); ++i) {
    const std::vector<std::uint64_t> weights = steering_->weights(i);
    for (std::size_t s = 0; s < used.size(); ++s) used[s] = used[s] || weights[s] > 0;
  }
  SourceKeys keys;
  for (std::size_t s = 0; s < used.size(); ++s) {
    if (used[s]) keys.insert(json(steering_->names()[s]).dump());
  }
  return keys;
}

// Caps are no difference until one of the two has been reached: up to there both mixtures have given the same.
void Mixture::compare_caps(std::string_view saved_text, std::uint64_t position, OrderDifference& out) const {
  const json saved = json::parse(saved_text);
  const json* asked = steering_ ? &saved : find_saved(saved, "asked");
  const json* caps = asked == nullptr ? nullptr : find_saved(*asked, "caps");
  if (caps == nullptr || !caps->is_object()) refuse_saved_job("its mixture does not say its caps");
  MixtureSpec spec = plan_->spec();
  bool differ = false;
  for (std::uint32_t s = 0; s < spec.names.size(); ++s) {
    const json* cap = find_saved(*caps, spec.names[s]);
    if (cap != nullptr && !cap->is_number_unsigned()) refuse_saved_job("a cap is no number");
    const std::uint64_t before = cap == nullptr ? Order::kNever : cap->get<std::uint64_t>();
    const std::uint64_t now = std::exchange(spec.caps[s], before);
    if (before == now) continue;
    differ = true;
    if (given_for_certain(*plan_, s, position) < std::min(before, now)) continue;
    const json own = now;
    out.texts.push_back({fmt::format("source {}: {}, which it had given", key_text(spec.names[s]),
                                     difference_text("cap", cap, now == Order::kNever ? nullptr : &own))});
  }
  // A short last group is among the stages of a mixture that is not steered.
  if (!steering_ || !differ || !out.texts.empty() || spec.group == 1 || position == 0) return;
  // Where no source is left, a group may be a short one, which depends on its end. What begins later is this mixture's
  // alone: with the saved caps it may be none.
  const std::vector<MixtureCourse>& list = plan_->courses().list();
  const auto is_before = [&](const MixtureCourse& course) { return course.begin < position; };
  spec.stages.resize(static_cast<std::size_t>(std::count_if(list.begin(), list.end(), is_before)));
  const auto set = std::make_shared<const Steering>(steering_->first(steering_->count_before(position)));
  const std::shared_ptr<const MixturePlan> then = MixturePlan(std::move(spec)).with(set);
  if (then->last_position() == plan_->last_position()) return;
  if (std::min(then->short_group(), plan_->short_group()) >= position) return;
  const json end = then->last_position();
  const json own = plan_->last_position();
  out.texts.push_back({difference_text("the end of the run, by which its last group is mixed",
                                       end == Order::kNever ? nullptr : &end, own == Order::kNever ? nullptr : &own)});
}

OrderDifference Mixture::difference_to(std::string_view saved, std::uint64_t position) const {
  if (!steering_) {
    OrderDifference difference = mixture_difference(saved, identity_of_list(kNever), position);
    if (difference.say_asked) compare_caps(saved, position, difference);
    return difference;
  }
  OrderDifference difference =
      steered_difference(saved, identity_of_list(kNever), position, sources_set_before(position));
  if (!difference.are_steered || !difference.texts.empty()) return difference;
  compare_caps(saved, position, difference);
  std::vector<std::uint64_t> given(plan_->spec().names.size());
  plan_->estimate(std::min(position, plan_->last_position()), given);
  difference.given.clear();
  for (std::size_t s = 0; s < given.size(); ++s) difference.given[json(plan_->spec().names[s]).dump()] = given[s];
  return difference;
}

std::string Mixture::place(std::uint64_t position) const {
  if (!steering_) return fmt::format("stage {}", plan_->stage_at(position));
  const MixtureCourse course = plan_->courses().at(std::min(position, kMostPosition));
  if (!course.entry) return fmt::format("stage {}", course.number);
  return fmt::format("stage {} (weights that were set from position {} on)", course.number, with_commas(course.begin));
}

}  // namespace penstock::shuffle
