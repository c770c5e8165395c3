#include "core/job/parsed_steering.h"

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/job/position.h"
#include "core/job/saved_json.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>

namespace penstock {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMostWeightSum = std::uint64_t{1} << 62;

[[noreturn]] void refuse_steered(const std::string& why) {
  raise(ErrorKind::Corruption, "job: order's steered: {}", why);
}

// Where each saved weight goes; the number of `names` where it goes nowhere.
std::vector<std::size_t> places_of(const json& said, const std::vector<std::string>& names) {
  std::vector<std::size_t> places;
  std::set<std::string> seen;
  for (const json& name : get_array(said, "names", "job: order's steered")) {
    if (!name.is_string()) refuse_steered("a name is no text");
    if (!seen.insert(name.get<std::string>()).second) refuse_steered("two sources have one name");
    const auto at = std::find(names.begin(), names.end(), name.get_ref<const std::string&>());
    places.push_back(static_cast<std::size_t>(at - names.begin()));
  }
  return places;
}

// Without weights, if it has those of lacking sources alone.
Steering::Entry parsed_entry(const json& stage, const json& said, const std::vector<std::size_t>& places,
                             std::size_t sources, bool lacking_too) {
  if (!stage.is_array() || stage.size() != places.size() + 1) refuse_steered("a stage is not [begin, weight, …]");
  Steering::Entry entry;
  entry.begin = as_u64(stage[0], "job: order's steered: a begin");
  entry.weights.resize(sources);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const std::uint64_t weight = as_u64(stage[i + 1], "job: order's steered: a weight");
    if (weight >= kMostWeightSum || (sum += weight) >= kMostWeightSum) refuse_steered("weights beyond 2^62");
    if (weight == 0) continue;
    if (places[i] == sources && lacking_too) continue;
    if (places[i] == sources) {
      raise(ErrorKind::StateMismatch, "source {}: it has a weight from position {} on, but is not of the job now",
            value_text(&said["names"][i], false), with_commas(entry.begin));
    }
    entry.weights[places[i]] = weight;
  }
  if (sum == 0) refuse_steered("a stage without weights");
  return entry;
}

}  // namespace

Steering parse_steering(const json& said, const std::vector<std::string>& names, bool lacking_too) {
  const std::vector<std::size_t> places = places_of(said, names);
  std::vector<Steering::Entry> entries;
  std::optional<std::uint64_t> last;
  for (const json& stage : get_array(said, "stages", "job: order's steered")) {
    Steering::Entry entry = parsed_entry(stage, said, places, names.size(), lacking_too);
    if (entry.begin > kMostPosition || (last && entry.begin <= *last)) refuse_steered("begins do not rise");
    last = entry.begin;
    const bool has_weights = std::any_of(entry.weights.begin(), entry.weights.end(), [](auto w) { return w > 0; });
    if (has_weights) entries.push_back(std::move(entry));
  }
  return Steering(names).with(entries);
}

}  // namespace penstock
