#include "shuffle/draws_advice.h"

#include "core/job/saved_json.h"

#include <nlohmann/json.hpp>

namespace penstock::shuffle {

std::string advice_on_draws(const std::string& key, const nlohmann::json& saved) {
  const nlohmann::json* algorithm = key == "algorithm" ? find_saved(saved, key) : nullptr;
  if (algorithm == nullptr || find_saved(saved, "draws") == nullptr) return "";
  if (*algorithm == 1) return ": its draws are systematic: give draws=\"systematic\" to the order to end that run";
  if (*algorithm == 2) return ": its draws are rounded: leave draws= of the order out to end that run";
  return "";
}

}  // namespace penstock::shuffle
