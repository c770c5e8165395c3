#include "shuffle/draws_advice.h"

#include "core/job/compare_orders.h"
#include "core/job/saved_json.h"

#include <nlohmann/json.hpp>

namespace penstock::shuffle {

std::string advice_on_draws(const std::string& key, const nlohmann::json& saved) {
  const nlohmann::json* algorithm = key == "algorithm" ? find_saved(saved, key) : nullptr;
  if (algorithm == nullptr || find_saved(saved, "draws") == nullptr) return "";
  if (*algorithm == 1) return ": its draws are systematic: give draws=\"systematic\" to the order to end that run";
  if (*algorithm == 2) return ": its draws are rounded: leave draws= of the order out to end that run";
  if (*algorithm == 3)
    return ": its draws are independent: give draws=\"independent\" to the order to go on with that run";
  return "";
}

OrderDifference drawn_difference(std::string_view saved, const std::string& identity, std::uint64_t position) {
  const auto tell = [](const std::string& key, const nlohmann::json& before, const nlohmann::json& now,
                       OrderDifference& out) {
    const std::string advice = advice_on_draws(key, before);
    if (advice.empty()) return false;
    out.texts.push_back({difference_text("order's algorithm", find_saved(before, key), find_saved(now, key)) + advice});
    return true;
  };
  return order_difference(saved, identity, position, tell);
}

}  // namespace penstock::shuffle
