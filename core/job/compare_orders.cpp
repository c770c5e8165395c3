#include "core/job/compare_orders.h"

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/job/saved_json.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

namespace penstock {

using nlohmann::json;

namespace {

std::string plain_words(const json* stage) {
  return stage == nullptr ? "no such stage" : value_text(stage, false);
}

}  // namespace

void compare_orders(const json& saved, const json& now, const TellMember& tell, OrderDifference& out) {
  const json* saved_name = find_saved(saved, "name");
  const json* now_name = find_saved(now, "name");
  const bool same_name = same_json(saved_name, now_name) || (saved_name == nullptr && now_name == nullptr);
  if (!same_name) out.texts.push_back({difference_text("order", saved_name, now_name)});
  for (const std::string& key : all_keys(saved, now)) {
    const json* a = find_saved(saved, key);
    const json* b = find_saved(now, key);
    if (same_json(a, b) || key == "name") continue;
    if (key == "seed") {
      // An order without a seed has been named above.
      if (same_name || (a != nullptr && b != nullptr)) out.texts.push_back({difference_text("seed", a, b, false)});
    } else if (same_name && !(tell && tell(key, saved, now, out))) {
      out.texts.push_back({difference_text("order's " + key_text(key), a, b), key == "size"});
    }
  }
}

std::optional<std::uint64_t> begin_of_stage(const json& stage) {
  const json* begin = stage.is_object() ? find_saved(stage, "begin") : nullptr;
  if (begin == nullptr || !begin->is_number_unsigned()) return std::nullopt;
  return begin->get<std::uint64_t>();
}

json stages_before(json order, std::uint64_t position) {
  const auto stages = order.find("stages");
  if (stages == order.end() || !stages->is_array()) return order;
  json kept = json::array();
  for (const json& stage : *stages) {
    const std::optional<std::uint64_t> begin = begin_of_stage(stage);
    if (!begin || *begin < position) kept.push_back(stage);
  }
  *stages = std::move(kept);
  return order;
}

void compare_stages(const json& saved, const json& now, std::uint64_t position, const StageWords& words,
                    OrderDifference& out) {
  for (std::size_t i = 0; i < std::max(saved.size(), now.size()); ++i) {
    const json* a = i < saved.size() ? &saved[i] : nullptr;
    const json* b = i < now.size() ? &now[i] : nullptr;
    if (same_json(a, b)) continue;
    const std::uint64_t begin = begin_of_stage(a != nullptr ? *a : *b).value_or(position);
    const std::uint64_t end = i + 1 < saved.size() ? begin_of_stage(saved[i + 1]).value_or(position) : position;
    out.texts.push_back({fmt::format("stage {}: saved {}, now {}; {} had been given from there on", i, words(a),
                                     words(b), counted(end - std::min(begin, end), "observation"))});
    return;
  }
}

OrderDifference order_difference(std::string_view saved, std::string_view now, std::uint64_t position,
                                 const TellMember& tell) {
  const std::uint64_t end = std::max<std::uint64_t>(position, 1);
  const json before = stages_before(parse_json_strict(saved, "the state's order"), end);
  const json after = stages_before(parse_json_strict(now, "the order's identity"), end);
  OrderDifference difference;
  compare_orders(
      before, after,
      [&](const std::string& key, const json& a, const json& b, OrderDifference& out) {
        if (tell && tell(key, a, b, out)) return true;
        const bool have_stages = key == "stages" && a.contains(key) && b.contains(key);
        if (!have_stages || !a[key].is_array() || !b[key].is_array()) return false;
        compare_stages(a[key], b[key], position, plain_words, out);
        return true;
      },
      difference);
  return difference;
}

}  // namespace penstock
