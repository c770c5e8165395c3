#include "core/job.h"

#include "core/error.h"
#include "core/json.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace penstock {
namespace {

using nlohmann::json;

constexpr std::uint64_t kJobFormat = 1;
constexpr std::size_t kMaxJobBytes = 16ULL << 20;

Ranges merged(Ranges ranges) {
  std::erase_if(ranges, [](const auto& range) { return range.first >= range.second; });
  std::sort(ranges.begin(), ranges.end());
  Ranges result;
  for (const auto& range : ranges) {
    if (!result.empty() && range.first <= result.back().second) {
      result.back().second = std::max(result.back().second, range.second);
    } else {
      result.push_back(range);
    }
  }
  return result;
}

json parse_job(std::string_view text) {
  json job;
  try {
    job = parse_json_strict(text, "the state's job", kMaxJobBytes);
  } catch (const Error& error) {
    throw Error(ErrorKind::InvalidArgument, error.what());
  }
  if (!job.is_object() || !job.contains("format") || job["format"] != kJobFormat) {
    raise(ErrorKind::StateMismatch, "the state's job is of no format that this penstock knows (it knows {})", kJobFormat);
  }
  for (const char* key : {"order", "skip", "sources"}) {
    if (!job.contains(key)) raise(ErrorKind::StateMismatch, "the state's job lacks \"{}\"", key);
  }
  return job;
}

// What of the order and the skips lies before `position`.
json order_before(json order, std::uint64_t position) {
  if (!order.is_object() || !order.contains("stages") || !order["stages"].is_array()) return order;
  json kept = json::array();
  for (json& stage : order["stages"]) {
    const bool later = stage.is_object() && stage.contains("begin") && stage["begin"].is_number_unsigned() &&
                       stage["begin"].get<std::uint64_t>() >= position && position > 0;
    if (!later) kept.push_back(std::move(stage));
  }
  order["stages"] = std::move(kept);
  return order;
}

Ranges skips_before(const json& skip, std::uint64_t position) {
  Ranges ranges;
  if (!skip.is_array()) raise(ErrorKind::StateMismatch, "the state's job has skips that are no list");
  for (const json& range : skip) {
    if (!range.is_array() || range.size() != 2 || !range[0].is_number_unsigned() || !range[1].is_number_unsigned()) {
      raise(ErrorKind::StateMismatch, "the state's job has a skip that is no [begin, end)");
    }
    ranges.emplace_back(std::min(range[0].get<std::uint64_t>(), position),
                        std::min(range[1].get<std::uint64_t>(), position));
  }
  return merged(std::move(ranges));
}

std::string shown(const json& value) {
  if (value.is_number_unsigned()) return with_commas(value.get<std::uint64_t>());
  return value.is_string() ? value.get<std::string>() : value.dump(-1, ' ', false, json::error_handler_t::replace);
}

json member_or_null(const json& object, const std::string& key) {
  return object.is_object() && object.contains(key) ? object[key] : json();
}

std::string dataset_words(const json& dataset) {
  return fmt::format("{} ({} shards, {} records)", shown(member_or_null(dataset, "fingerprint")),
                     shown(member_or_null(dataset, "shards")), shown(member_or_null(dataset, "records")));
}

// Each member of two objects that differs: "seed: saved 1, now 2".
void compare_members(const json& saved, const json& now, const std::string& what, std::vector<std::string>& found) {
  if (saved == now) return;
  if (!saved.is_object() || !now.is_object()) {
    found.push_back(fmt::format("{}: saved {}, now {}", what, shown(saved), shown(now)));
    return;
  }
  json keys = saved;
  keys.update(now);
  for (const auto& [key, unused] : keys.items()) {
    const json before = member_or_null(saved, key);
    const json after = member_or_null(now, key);
    if (before == after) continue;
    const std::string name = key == "name" || key == "kind" ? what : key == "size" ? "observations in an epoch" : key;
    found.push_back(fmt::format("{}: saved {}, now {}", name, before.is_null() ? "none" : shown(before),
                                after.is_null() ? "none" : shown(after)));
  }
}

void compare_sources(const json& saved, const json& now, std::vector<std::string>& found) {
  if (saved.size() != now.size()) {
    found.push_back(fmt::format("sources: saved {}, now {}", saved.size(), now.size()));
    return;
  }
  for (std::size_t i = 0; i < saved.size(); ++i) {
    const json before = member_or_null(saved[i], "dataset");
    const json after = member_or_null(now[i], "dataset");
    if (before != after) {
      found.push_back(fmt::format("dataset: the state was saved on {}, this one is {}", dataset_words(before),
                                  dataset_words(after)));
    }
    compare_members(member_or_null(saved[i], "view"), member_or_null(now[i], "view"), "view", found);
  }
}

}  // namespace

std::string job_json(const Order& order, const std::vector<std::shared_ptr<const Source>>& sources, const Ranges& skip) {
  json job;  // nlohmann's objects are sorted by key
  job["format"] = kJobFormat;
  job["order"] = json::parse(order.identity(Order::kNever));
  job["skip"] = merged(skip);
  job["sources"] = json::array();
  for (const auto& source : sources) {
    json dataset;
    dataset["fingerprint"] = source->fingerprint();
    dataset["shards"] = source->shard_count();
    dataset["records"] = source->record_count();
    job["sources"].push_back({{"dataset", std::move(dataset)}, {"view", json::parse(source->identity())}});
  }
  return job.dump();
}

std::optional<std::string> job_difference(std::string_view saved, std::string_view current, std::uint64_t position) {
  const json before = parse_job(saved);
  const json now = parse_job(current);
  if (!before["sources"].is_array()) raise(ErrorKind::StateMismatch, "the state's job has sources that are no list");
  std::vector<std::string> found;
  compare_sources(before["sources"], now["sources"], found);
  compare_members(order_before(before["order"], position), order_before(now["order"], position), "order", found);
  if (skips_before(before["skip"], position) != skips_before(now["skip"], position)) {
    found.push_back(fmt::format("skip: positions before {} were left out differently", with_commas(position)));
  }
  if (found.empty()) return std::nullopt;
  return fmt::format("{}", fmt::join(found, "; "));
}

}  // namespace penstock
