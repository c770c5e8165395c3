#include "shuffle/mixture_difference.h"

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/job/compare_orders.h"
#include "core/job/saved_json.h"
#include "shuffle/draws_advice.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

// The identity of a mixture:
//   {"algorithm":1,"name":"mixture","seed":…,
//    "orders":{source:…}                          Order::identity of each source that a stage uses
//    "stages":[{"begin":…,"sources":[source,…],"weights":[…],…},…]
//    "asked":{"caps":{source:…},"stages":[…]}}   the list, where the stages as they came out do not say all
//    "caps":{source:…}, "steered":{"names":[source,…],"stages":[[begin,weight,…],…]}}     of a steered one
// States were saved without "asked" before: they say no more than their stages.

namespace penstock::shuffle {
namespace {

using nlohmann::json;

/// Whether sources have orders of their own and stages tell when each is used.
bool is_mixture(const json& order) {
  const json* stages = find_saved(order, "stages");
  const json* orders = find_saved(order, "orders");
  return stages != nullptr && stages->is_array() && orders != nullptr && orders->is_object();
}

std::string source_key(const std::string& name) {
  return json(name).dump();
}

std::string source_text(const std::string& key) {
  const json name = json::parse(key);
  return value_text(&name, false);
}

/// The sources that an order's stages use; none where it has no stages, or one does not say.
std::optional<SourceKeys> sources_of(const json& order) {
  const json* stages = find_saved(order, "stages");
  if (stages == nullptr || !stages->is_array()) return std::nullopt;
  SourceKeys used;
  for (const json& stage : *stages) {
    const json* sources = stage.is_object() ? find_saved(stage, "sources") : nullptr;
    if (sources == nullptr || !sources->is_array()) return std::nullopt;
    for (const json& source : *sources) used.insert(source.dump());
  }
  return used;
}

void check_orders(const json& saved) {
  const auto used = sources_of(saved);
  for (const auto& [name, order] : saved["orders"].items()) {
    if (!used || used->contains(source_key(name))) continue;
    refuse_saved_job(fmt::format("it has an order of source {}, which no stage uses", key_text(name)));
  }
}

/// Whether weights can be set while it runs: then any source may be used, and `set` have been before the position.
bool is_steered(const json& order) {
  return find_saved(order, "steered") != nullptr;
}

/// The sources that an order uses before the position to which its stages were cut.
std::optional<SourceKeys> used_sources_of(const json& order, const SourceKeys& set) {
  std::optional<SourceKeys> used = sources_of(order);
  if (used && is_steered(order)) used->insert(set.begin(), set.end());
  return used;
}

/// The stages that begin before `position`, and the orders of their sources.
json order_before(json order, std::uint64_t position, const SourceKeys& set) {
  order = stages_before(std::move(order), position);
  const auto orders = order.find("orders");
  const auto used = used_sources_of(order, set);
  if (orders == order.end() || !orders->is_object() || !used) return order;
  json kept = json::object();
  for (const auto& [name, each] : orders->items()) {
    if (used->contains(source_key(name))) kept[name] = each;
  }
  *orders = std::move(kept);
  return order;
}

// ---- stages

struct StageWeight {
  std::string source;
  std::uint64_t weight;
};

/// What an untrusted stage says of weights; empty if it says none.
std::vector<StageWeight> weights_of(const json& stage) {
  std::vector<StageWeight> weights;
  const json* sources = stage.is_object() ? find_saved(stage, "sources") : nullptr;
  const json* numbers = stage.is_object() ? find_saved(stage, "weights") : nullptr;
  if (sources == nullptr || numbers == nullptr || !sources->is_array() || !numbers->is_array()) return weights;
  for (std::size_t i = 0; i < std::min(sources->size(), numbers->size()); ++i) {
    const json& number = (*numbers)[i];
    weights.push_back({(*sources)[i].dump(), number.is_number_unsigned() ? number.get<std::uint64_t>() : 0});
  }
  return weights;
}

/// Each source's part of what a stage gives; empty if it says no weights.
std::map<std::string, long double> shares_of(const json& stage) {
  long double sum = 0;
  std::map<std::string, long double> shares;
  for (const auto& [source, weight] : weights_of(stage)) {
    sum += static_cast<long double>(weight);
    shares[source] += static_cast<long double>(weight);
  }
  if (sum <= 0) return {};
  for (auto& [source, share] : shares) share /= sum;
  return shares;
}

/// The part of a stretch of `length` from the stage's begin on that is given by the shares before it, as a ramp goes
/// from those to its own.
long double part_before(const json& stage, std::uint64_t length) {
  const json* ramp = stage.is_object() ? find_saved(stage, "ramp") : nullptr;
  if (ramp == nullptr || !ramp->is_number_unsigned() || length == 0) return 0;
  const auto whole = static_cast<long double>(std::max<std::uint64_t>(ramp->get<std::uint64_t>(), 1));
  const auto given = static_cast<long double>(length);
  const long double past = std::min(whole, given);
  return (past - past * past / (2 * whole)) / given;
}

/// About how many observations of each source the saved mixture had given: each stage keeps to its weights.
std::map<std::string, std::uint64_t> given_before(const json& stages, std::uint64_t position) {
  std::map<std::string, long double> given;
  std::map<std::string, long double> shares;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const std::uint64_t end = i + 1 < stages.size() ? begin_of_stage(stages[i + 1]).value_or(position) : position;
    const std::map<std::string, long double> before = shares;
    std::map<std::string, long double> own = shares_of(stages[i]);
    if (!own.empty()) shares = std::move(own);  // where a stage says no weights, those before it hold
    const std::uint64_t begin = begin_of_stage(stages[i]).value_or(end);
    if (begin >= end) continue;
    const auto length = static_cast<long double>(end - begin);
    const long double ramped = part_before(stages[i], end - begin);
    for (const auto& [source, share] : shares) given[source] += length * share * (1 - ramped);
    for (const auto& [source, share] : before) given[source] += length * share * ramped;
  }
  std::map<std::string, std::uint64_t> rounded;
  for (const auto& [source, count] : given) rounded[source] = static_cast<std::uint64_t>(count + 0.5L);
  return rounded;
}

std::string stage_text(const json* stage) {
  if (stage == nullptr) return "no such stage";
  std::string text;
  for (const auto& [source, weight] : weights_of(*stage)) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", source_text(source), with_commas(weight));
  }
  const std::string begin = with_commas(begin_of_stage(*stage).value_or(0));
  if (const json* end = find_saved(*stage, "end"); end != nullptr && text.empty()) {
    return fmt::format("the run's end at position {}, by which the group from {} is mixed", value_text(end, true),
                       begin);
  }
  if (text.empty()) return value_text(stage, false);
  if (const json* window = find_saved(*stage, "window")) text += " in windows of " + value_text(window, true);
  text += " from position " + begin;
  for (const auto& [key, value] : stage->items()) {
    if (key == "begin" || key == "sources" || key == "weights" || key == "window") continue;
    text += fmt::format(", {} {}", key_text(key), value_text(&value, true));
  }
  return text;
}

// ---- orders of the sources

/// `same_seed`: of the mixtures; where it differs, theirs are only its consequences.
void compare_source_order(const std::string& name, const json* saved, const json* now, bool same_seed,
                          OrderDifference& out) {
  const std::string what = fmt::format("source {}: order", key_text(name));
  if (saved == nullptr || now == nullptr || !saved->is_object() || !now->is_object()) {
    if (!same_json(saved, now)) out.texts.push_back({difference_text(what, saved, now)});
    return;
  }
  for (const std::string& member : all_keys(*saved, *now)) {
    const json* a = find_saved(*saved, member);
    const json* b = find_saved(*now, member);
    if (same_json(a, b) || (member == "seed" && !same_seed)) continue;
    const std::string text = difference_text(fmt::format("{}'s {}", what, key_text(member)), a, b);
    out.texts.push_back({text + advice_on_draws(member, *saved), member == "size"});
  }
}

/// Of sources that one of the two does not use its stages tell.
void compare_source_orders(const json& saved, const json& now, OrderDifference& out) {
  const bool same_seed = same_json(find_saved(saved, "seed"), find_saved(now, "seed"));
  for (const std::string& name : all_keys(saved["orders"], now["orders"])) {
    const std::string key = source_key(name);
    const bool told = out.saved_sources && out.sources;
    if (told && !(out.saved_sources->contains(key) && out.sources->contains(key))) continue;
    compare_source_order(name, find_saved(saved["orders"], name), find_saved(now["orders"], name), same_seed, out);
  }
}

// ---- the list as it was asked for

/// Null: an order does not say it.
const json* asked_of(const json& order) {
  const json* asked = find_saved(order, "asked");
  if (asked == nullptr) return nullptr;
  const json* caps = find_saved(*asked, "caps");
  const json* stages = find_saved(*asked, "stages");
  if (caps == nullptr || !caps->is_object() || stages == nullptr || !stages->is_array() || asked->size() != 2) {
    refuse_saved_job("what was asked of its mixture is not caps and stages");
  }
  for (const json& cap : *caps) {
    if (!cap.is_number_unsigned()) refuse_saved_job("a cap is no number");
  }
  return asked;
}

/// The difference of two orders whose stages came out alike.
void compare_asked(const json& saved, const json& now, std::uint64_t position, OrderDifference& out) {
  const json* a = asked_of(saved);
  const json* b = asked_of(now);
  if (a == nullptr || b == nullptr || !out.texts.empty()) return;
  out.say_asked = true;
  compare_stages(stages_before(*a, position)["stages"], stages_before(*b, position)["stages"], position, stage_text,
                 out);
  for (OrderDifference::Text& each : out.texts) each.text.insert(each.text.find(':'), " as it was asked for");
}

std::string steered_text(bool was_steered) {
  return was_steered ? "steered: the state's mixture is, this one is not: give Mixture(…, steered=True)"
                     : "steered: the state's mixture is not, this one is, which is part of the job";
}

}  // namespace

OrderDifference mixture_difference(std::string_view saved, std::string_view now, std::uint64_t position) {
  return steered_difference(saved, now, position, {});
}

OrderDifference steered_difference(std::string_view saved_text, std::string_view now_text, std::uint64_t position,
                                   const SourceKeys& set) {
  const json whole = parse_json_strict(saved_text, "the state's order");
  const json whole_now = parse_json_strict(now_text, "the order's identity");
  OrderDifference difference;
  difference.refuses_unknown = is_mixture(whole);
  difference.are_mixed = is_mixture(whole) && is_mixture(whole_now);
  difference.are_steered = difference.are_mixed && is_steered(whole) && is_steered(whole_now);
  if (is_mixture(whole) && !is_steered(whole)) check_orders(whole);
  // At position 0 another order is another job all the same; but a mixture is all stages, and has given nothing there.
  const std::uint64_t end = difference.are_mixed ? position : std::max<std::uint64_t>(position, 1);
  const json saved = order_before(whole, end, set);
  const json now = order_before(whole_now, end, set);
  difference.saved_sources = used_sources_of(saved, set);
  difference.sources = used_sources_of(now, set);
  if (difference.are_mixed) difference.given = given_before(saved["stages"], position);
  compare_orders(
      saved, now,
      [&](const std::string& key, const json& a, const json& b, OrderDifference& out) {
        if (!is_mixture(a) || !is_mixture(b)) return false;
        if (key == "orders") compare_source_orders(a, b, out);
        if (key == "stages") compare_stages(a[key], b[key], position, stage_text, out);
        if (key == "steered" && !out.are_steered) out.texts.push_back({steered_text(is_steered(a))});
        if (key == "asked") return !out.are_steered;
        if (key == "caps") return is_steered(a) || is_steered(b);
        return key == "orders" || key == "stages" || key == "steered";
      },
      difference);
  if (difference.are_mixed && !difference.are_steered) compare_asked(whole, whole_now, end, difference);
  return difference;
}

}  // namespace penstock::shuffle
