#include "core/job/carry_over.h"

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/job/position.h"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>
#include <vector>

namespace penstock {
namespace {

using nlohmann::json;

__extension__ using Wide = unsigned __int128;

// Positions from `begin` on are windows of one size.
struct Windows {
  std::uint64_t begin = 0;
  std::uint64_t size = 0;

  bool operator==(const Windows&) const = default;
};

// What a job's positions count.
struct Unit {
  std::string text;
  std::vector<Windows> windows;  // by their begins, the first at 0; empty: no windows of one size
};

std::uint64_t number_of(const json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_number_unsigned() ? at->get<std::uint64_t>() : 0;
}

// The windows of a job whose views have windows of `size`: an order's stages may have others.
std::vector<Windows> windows_of(const json& root, std::uint64_t size) {
  std::vector<Windows> windows{{0, size}};
  const json order = root.value("order", json::object());
  const json stages = order.is_object() ? order.value("stages", json::array()) : json::array();
  for (const json& stage : stages) {
    if (!stage.is_object()) continue;
    const std::uint64_t begin = number_of(stage, "begin");
    const std::uint64_t own = number_of(stage, "window");
    const std::uint64_t now = own == 0 ? size : own;
    if (begin < windows.back().begin || now == windows.back().size) continue;
    if (begin == windows.back().begin) windows.pop_back();
    windows.push_back({begin, now});
  }
  return windows;
}

std::string windows_text(const std::vector<Windows>& windows) {
  std::vector<std::string> sizes;
  for (const Windows& each : windows) {
    const std::string size = with_commas(each.size);
    if (std::find(sizes.begin(), sizes.end(), size) == sizes.end()) sizes.push_back(size);
  }
  return fmt::format("windows of {}", fmt::join(sizes, " and "));
}

// The job is untrusted: of its order and views nothing is known but that they are objects.
Unit unit_of(std::string_view job) {
  const json root = json::parse(job);
  std::set<std::string> units;
  std::uint64_t window = 0;
  for (const json& source : root.at("sources")) {
    const json& view = source.at("view");
    const json kind = view.value("kind", json());
    const std::uint64_t size = number_of(view, "window");
    if (kind == "windows" && size > 0) window = size;
    units.insert(kind == "windows" && size > 0  ? fmt::format("windows of {}", with_commas(size))
                 : kind == "packed" && size > 0 ? fmt::format("packed rows of {}", with_commas(size))
                 : kind == "documents"          ? "documents"
                 : kind == "collection"         ? "observations of a collection"
                                                : "observations of an unknown kind");
  }
  if (units.size() != 1) return {"observations of several sizes", {}};
  if (window == 0) return {*units.begin(), {}};
  const std::vector<Windows> windows = windows_of(root, window);
  return {windows_text(windows), windows};
}

Wide records_before(const std::vector<Windows>& windows, std::uint64_t position) {
  Wide records = 0;
  for (std::size_t i = 0; i < windows.size() && windows[i].begin < position; ++i) {
    const std::uint64_t end = i + 1 < windows.size() ? std::min(position, windows[i + 1].begin) : position;
    records += Wide{end - windows[i].begin} * windows[i].size;
  }
  return records;
}

// The last position before which there are at most this many records.
std::optional<std::uint64_t> position_after(const std::vector<Windows>& windows, Wide records) {
  for (std::size_t i = 0; i < windows.size(); ++i) {
    const Wide count = records / windows[i].size;
    if (i + 1 < windows.size() && count >= windows[i + 1].begin - windows[i].begin) {
      records -= Wide{windows[i + 1].begin - windows[i].begin} * windows[i].size;
      continue;
    }
    if (count > kMostPosition - std::min(windows[i].begin, kMostPosition)) return std::nullopt;
    return windows[i].begin + static_cast<std::uint64_t>(count);
  }
  return std::nullopt;
}

}  // namespace

CarryOver carry_over(std::string_view saved, std::string_view current, std::uint64_t position) {
  const Unit before = unit_of(saved);
  const Unit now = unit_of(current);
  CarryOver result{std::nullopt, before.text, now.text};
  if (before.text == now.text && before.windows == now.windows) {
    result.position = position;
  } else if (!before.windows.empty() && !now.windows.empty()) {
    result.position = position_after(now.windows, records_before(before.windows, position));
  }
  return result;
}

}  // namespace penstock
