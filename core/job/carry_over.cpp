#include "core/job/carry_over.h"

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/job/cursor.h"

#include <nlohmann/json.hpp>

#include <set>

namespace penstock {
namespace {

using nlohmann::json;

// What a job's positions count. The job is untrusted: of its views nothing is known but that they are objects.
struct Unit {
  std::string text;
  std::uint64_t window = 0;  // 0: no windows of one size
};

Unit unit_of(std::string_view job) {
  const json root = json::parse(job);
  std::set<std::string> units;
  std::uint64_t window = 0;
  for (const json& source : root.at("sources")) {
    const json& view = source.at("view");
    const auto size = view.find("window");
    const bool has_windows = view.value("kind", json()) == "windows" && size != view.end() &&
                             size->is_number_unsigned() && size->get<std::uint64_t>() > 0;
    if (has_windows) {
      window = size->get<std::uint64_t>();
      units.insert(fmt::format("windows of {}", with_commas(window)));
    } else {
      const json kind = view.value("kind", json());
      const bool has_rows = kind == "packed" && size != view.end() && size->is_number_unsigned();
      units.insert(has_rows               ? fmt::format("packed rows of {}", with_commas(size->get<std::uint64_t>()))
                   : kind == "documents"  ? "documents"
                   : kind == "collection" ? "observations of a collection"
                                          : "observations of an unknown kind");
    }
  }
  if (units.size() != 1) return {"observations of several sizes", 0};
  return {*units.begin(), window};
}

}  // namespace

CarryOver carry_over(std::string_view saved, std::string_view current, std::uint64_t position) {
  const Unit before = unit_of(saved);
  const Unit now = unit_of(current);
  CarryOver result{std::nullopt, before.text, now.text};
  if (before.text == now.text) {
    result.position = position;
  } else if (before.window > 0 && now.window > 0) {
    __extension__ using u128 = unsigned __int128;
    const u128 carried = u128{position} * before.window / now.window;
    if (carried <= kMostPosition) result.position = static_cast<std::uint64_t>(carried);
  }
  return result;
}

}  // namespace penstock
