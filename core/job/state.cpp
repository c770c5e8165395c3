#include "core/job/state.h"

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/job/cursor.h"
#include "core/job/parsed_steering.h"
#include "core/job/saved_json.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

// A job of format 1:
//   {"format":1,
//    "order":{"name":…,"seed":…,…}          Order::identity; with "stages":[{"begin":…,…},…] where it has stages
//    "skip":[[begin,end],…],
//    "sources":[{"dataset":{"fingerprint":…,"records":…,"shards":…},"view":{"kind":…,…}},…]}
// Format 2 is of steered jobs, which earlier versions refuse: the order ends with
//    "steered":{"names":[source,…],"stages":[[begin,weight,…],…]}}       what was set, see core/job/steering.h

namespace penstock {
namespace {

using nlohmann::json;

constexpr std::uint64_t kJobFormat = 1;
constexpr std::uint64_t kSteeredFormat = 2;
constexpr std::size_t kMaxJobBytes = std::size_t{64} << 20;
constexpr std::size_t kMostText = 320;  // of differences, so that a message stays short

using Differences = std::vector<std::string>;

// ---- a parsed job

struct ParsedJob {
  json root;
  Ranges skip;
};

Ranges parse_skip(const json& list) {
  Ranges skip;
  for (const json& range : list) {
    if (!range.is_array() || range.size() != 2) raise(ErrorKind::Corruption, "job: a skip is not [begin, end]");
    skip.emplace_back(as_u64(range[0], "job: a skip"), as_u64(range[1], "job: a skip"));
  }
  return merge_skips(std::move(skip));
}

void check_shape(const json& root) {
  get_object(root, "order", "job");
  const json& sources = get_array(root, "sources", "job");
  if (sources.empty()) raise(ErrorKind::Corruption, "job: no sources");
  std::set<std::string> names;
  for (const json& source : sources) {
    const json& dataset = get_object(source, "dataset", "job: source");
    if (find_saved(source, "name") != nullptr && !names.insert(get_string(source, "name", "job: source")).second) {
      raise(ErrorKind::Corruption, "job: two sources have one name");
    }
    get_string(dataset, "fingerprint", "job: dataset");
    get_u64(dataset, "records", "job: dataset");
    get_u64(dataset, "shards", "job: dataset");
    get_object(source, "view", "job: source");
  }
}

bool is_json(std::string_view text) {
  try {
    check_json_strict(text, "the state's job", kMaxJobBytes);
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// What was set is not compared: an order of format 2 is left with none of it.
void take_steered(json& order, bool is_steered) {
  const json* steered = find_saved(order, "steered");
  if (is_steered != (steered != nullptr)) raise(ErrorKind::Corruption, "job: the format is not that of its order");
  if (steered == nullptr) return;
  if (!steered->is_object() || steered->size() != 2 || !steered->contains("names") || !steered->contains("stages")) {
    raise(ErrorKind::Corruption, "job: order's steered is not names and stages");
  }
  const json stages = std::exchange(order["steered"]["stages"], json::array());
  if (!stages.is_array()) raise(ErrorKind::Corruption, "job: order's steered has no list");
}

ParsedJob parse_job(std::string_view text) {
  ParsedJob job;
  try {
    job.root = parse_json_strict(text, "the state's job", kMaxJobBytes);
  } catch (const Error& error) {
    raise(ErrorKind::InvalidArgument, "{}", error.what());
  }
  try {
    const std::uint64_t format = get_u64(job.root, "format", "job");
    if (format != kJobFormat && format != kSteeredFormat) {
      raise(ErrorKind::Corruption, "format {}, this penstock reads formats {} and {}", with_commas(format), kJobFormat,
            kSteeredFormat);
    }
    check_shape(job.root);
    take_steered(job.root["order"], format == kSteeredFormat);
    job.skip = parse_skip(get_array(job.root, "skip", "job"));
  } catch (const Error& error) {
    refuse_saved_job(error.what());
  }
  return job;
}

// ---- what differs

std::string short_fingerprint(const std::string& fingerprint, const std::string& other) {
  // Hex digits of which the first ones tell them apart; shown whole where they do not.
  const bool distinct = fingerprint.size() > 8 && fingerprint.compare(0, 8, other, 0, 8) != 0;
  const json shown = distinct ? fingerprint.substr(0, 8) : fingerprint;
  const bool ascii = std::all_of(fingerprint.begin(), fingerprint.end(), [](char c) { return c > ' ' && c < 127; });
  return ascii ? value_text(&shown, false) + (distinct ? "…" : "") : "an unreadable fingerprint";
}

std::string dataset_text(const json& dataset, const std::string& other_fingerprint) {
  const std::string name = short_fingerprint(dataset["fingerprint"].get<std::string>(), other_fingerprint);
  const auto shards = dataset["shards"].get<std::uint64_t>();
  const auto records = dataset["records"].get<std::uint64_t>();
  if (shards == 0) return fmt::format("{} ({})", name, counted(records, "observation"));  // a collection
  return fmt::format("{} ({}, {})", name, counted(shards, "shard"), counted(records, "record"));
}

/// Members that this version does not know but that someone thought part of the job.
void compare_others(const json& saved, const json& now, const std::set<std::string>& known, const std::string& prefix,
                    Differences& out) {
  for (const std::string& key : all_keys(saved, now)) {
    if (known.contains(key)) continue;
    const json* a = find_saved(saved, key);
    const json* b = find_saved(now, key);
    if (!same_json(a, b)) out.push_back(difference_text(prefix + key_text(key), a, b));
  }
}

/// "slice" for "slice" and "slice2": sub-views of sub-views number their members.
std::string_view without_number(std::string_view key) {
  return key.substr(0, key.find_last_not_of("0123456789") + 1);
}

// Of a view of documents that a condition chose: the digests tell nobody anything.
std::string choice_text(const std::string& what, const json* saved, const json* now) {
  const auto condition = [](const json* where) { return where == nullptr ? nullptr : find_saved(*where, "condition"); };
  const json* const before = condition(saved);
  const json* const after = condition(now);
  if (!same_json(before, after)) return difference_text(what, before, after);
  const auto count = [](const json* where) { return value_text(find_saved(*where, "count"), true); };
  return fmt::format(
      "{} {}: it chose {} documents when the state was saved, now {}, or other ones: the columns changed", what,
      value_text(before, false), count(saved), count(now));
}

void compare_source(const json& saved, const json& now, const std::string& prefix, Differences& out) {
  // Only the fingerprint decides: the same records in other shards are the same dataset.
  const auto saved_print = saved["dataset"]["fingerprint"].get<std::string>();
  const auto now_print = now["dataset"]["fingerprint"].get<std::string>();
  if (saved_print != now_print) {
    out.push_back(fmt::format("{}dataset: the state was saved on {}, this one is {}", prefix,
                              dataset_text(saved["dataset"], now_print), dataset_text(now["dataset"], saved_print)));
  }
  compare_others(saved, now, {"dataset", "view"}, prefix, out);
  compare_others(saved["dataset"], now["dataset"], {"fingerprint", "records", "shards"}, prefix + "dataset's ", out);
  const json& saved_view = saved["view"];
  const json& now_view = now["view"];
  const json* saved_kind = find_saved(saved_view, "kind");
  const json* now_kind = find_saved(now_view, "kind");
  if (value_text(saved_kind, false) != value_text(now_kind, false)) {
    out.push_back(difference_text(prefix + "view", saved_kind, now_kind));
    return;
  }
  for (const std::string& key : all_keys(saved_view, now_view)) {
    const json* a = find_saved(saved_view, key);
    const json* b = find_saved(now_view, key);
    if (same_json(a, b)) continue;
    const bool is_where = without_number(key) == "where";
    out.push_back(is_where ? choice_text(prefix + key_text(key), a, b) : difference_text(prefix + key_text(key), a, b));
  }
}

void check_keys(const json& object, const std::set<std::string_view>& known, const std::string& what) {
  for (const auto& [key, value] : object.items()) {
    if (!known.contains(key)) refuse_saved_job(fmt::format("{} has {}, which is unknown", what, key_text(key)));
  }
}

/// Refuses members that no view of this version has: views of later stages are compared with none.
void check_view(const json& view, const std::string& what) {
  static const std::map<std::string_view, std::set<std::string_view>> of_kind{
      {"windows", {"kind", "lookahead", "phase", "window"}},
      {"documents", {"begin_of_document", "end_of_document", "kind"}},
      {"packed",
       {"begin_of_document", "buffer", "cut", "end_of_document", "fill", "fit", "group", "kind", "long", "lookahead",
        "max_document", "max_documents", "multiple_of", "refill", "window"}},
      {"entries", {"kind"}},
      {"collection", {"kind"}}};
  static const std::set<std::string_view> of_parts{"cut", "selection", "slice", "split", "where"};
  const json* kind = find_saved(view, "kind");
  const auto known =
      kind != nullptr && kind->is_string() ? of_kind.find(kind->get_ref<const std::string&>()) : of_kind.end();
  if (known == of_kind.end()) {
    refuse_saved_job(fmt::format("{} is of an unknown kind, {}", what, value_text(kind, false)));
  }
  for (const auto& [key, value] : view.items()) {
    if (known->second.contains(key) || of_parts.contains(without_number(key))) continue;
    refuse_saved_job(fmt::format("{} has {}, which is unknown", what, key_text(key)));
  }
}

/// How stages name each source: by its name, or its number where it has none.
std::vector<std::string> source_keys(const json& sources) {
  std::vector<std::string> keys;
  for (const json& source : sources) {
    const json* name = find_saved(source, "name");
    keys.push_back(name != nullptr && name->is_string() ? name->dump() : std::to_string(keys.size()));
  }
  return keys;
}

std::string source_text(const std::string& key) {
  const json name = json::parse(key);
  return value_text(&name, false);
}

/// Refuses members that this version does not know: of a source that is not used yet nothing is compared.
void check_sources(const json& sources) {
  const std::vector<std::string> keys = source_keys(sources);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::string what = fmt::format("source {}", source_text(keys[i]));
    check_keys(sources[i], {"dataset", "name", "view"}, what);
    check_keys(sources[i]["dataset"], {"fingerprint", "records", "shards"}, what + "'s dataset");
    check_view(sources[i]["view"], what + "'s view");
  }
}

/// By their keys, those that an order uses.
std::map<std::string, const json*> used_sources(const json& sources, const std::optional<SourceKeys>& uses) {
  const std::vector<std::string> keys = source_keys(sources);
  std::map<std::string, const json*> used;
  for (std::size_t i = 0; i < keys.size(); ++i) used.emplace(keys[i], &sources[i]);
  if (uses) std::erase_if(used, [&](const auto& source) { return !uses->contains(source.first); });
  return used;
}

std::string given_text(const OrderDifference& order, const std::string& key) {
  if (!order.are_mixed) return "";
  const auto given = order.given.find(key);
  const std::uint64_t count = given == order.given.end() ? 0 : given->second;
  return fmt::format("; about {} of it had been given", counted(count, "observation"));
}

void compare_sources(const json& saved, const json& now, const OrderDifference& order, Differences& out) {
  const auto before = used_sources(saved, order.saved_sources);
  const auto after = used_sources(now, order.sources);
  if (before.size() != after.size() && !order.are_mixed) {
    const json saved_count = before.size();
    const json now_count = after.size();
    out.push_back(difference_text("number of sources", &saved_count, &now_count));
    return;
  }
  const bool are_many = order.are_mixed || before.size() > 1;
  for (const auto& [key, source] : before) {
    const auto same = after.find(key);
    if (same == after.end()) {
      out.push_back(
          fmt::format("source {}: saved, but not of the job now{}", source_text(key), given_text(order, key)));
      continue;
    }
    Differences differences;
    compare_source(*source, *same->second, are_many ? fmt::format("source {}: ", source_text(key)) : "", differences);
    for (const std::string& each : differences) out.push_back(each + given_text(order, key));
  }
  for (const auto& [key, source] : after) {
    if (order.saved_sources && order.saved_sources->contains(key) && !before.contains(key)) {
      out.push_back(
          fmt::format("source {}: the saved stages use it, and the state says nothing of it", source_text(key)));
    }
  }
}

Ranges clipped(const Ranges& skip, std::uint64_t position) {
  Ranges out;
  for (const auto& [begin, end] : skip) {
    if (begin < position) out.emplace_back(begin, std::min(end, position));
  }
  return out;
}

std::string ranges_text(const Ranges& ranges) {
  if (ranges.empty()) return "none";
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(ranges.size(), 3); ++i) {
    text += fmt::format("{}({}, {})", i == 0 ? "" : ", ", with_commas(ranges[i].first), with_commas(ranges[i].second));
  }
  return ranges.size() > 3 ? fmt::format("{}, … ({} ranges)", text, with_commas(ranges.size())) : text;
}

void compare_skips(const Ranges& saved, const Ranges& now, std::uint64_t position, Differences& out) {
  const Ranges a = clipped(saved, position);
  const Ranges b = clipped(now, position);
  if (a == b) return;
  out.push_back(
      fmt::format("skip before position {}: saved {}, now {}", with_commas(position), ranges_text(a), ranges_text(b)));
}

}  // namespace

std::string job_json(const Order& order, std::span<const SourceIdentity> sources, const Ranges& skip) {
  JobText text = job_text(order, sources, skip);
  if (text.after.empty()) return std::move(text.before);
  order.steering()->append_text(order.steering()->size(), text.before);
  return text.before + text.after;
}

JobText job_text(const Order& order, std::span<const SourceIdentity> sources, const Ranges& skip) {
  const std::shared_ptr<const Steering> steering = order.steering();
  const std::string identity =
      steering == nullptr || steering->size() == 0
          ? order.identity(Order::kNever)
          : order.steered(std::make_shared<const Steering>(steering->first(0)))->identity(Order::kNever);
  json root;  // its objects keep their keys sorted, so dump() is canonical
  root["format"] = steering ? kSteeredFormat : kJobFormat;
  root["order"] = parse_json_strict(identity, "the order's identity");
  root["skip"] = json::array();
  for (const auto& [begin, end] : merge_skips(skip)) root["skip"].push_back(json::array({begin, end}));
  root["sources"] = json::array();
  for (const SourceIdentity& source : sources) {
    json entry = {
        {"dataset", {{"fingerprint", source.fingerprint}, {"records", source.records}, {"shards", source.shards}}},
        {"view", parse_json_strict(source.view, "the view's identity")}};
    if (!source.name.empty()) entry["name"] = source.name;
    root["sources"].push_back(std::move(entry));
  }
  JobText text{root.dump(), ""};
  if (!steering) return text;
  // Before the end of the list in "steered", the order's last member, which "skip" follows.
  const std::string order_text = root["order"].dump();
  const std::size_t begin = text.before.find(order_text) + order_text.size() - std::string_view("]}}").size();
  text.after = text.before.substr(begin);
  text.before.resize(begin);
  return text;
}

std::optional<Steering> saved_steering(std::string_view saved, const JobText& now,
                                       const std::vector<std::string>& names, bool lacking_too) {
  try {
    if (saved.size() > kMaxJobBytes) return std::nullopt;
    if (saved.starts_with(now.before) && saved.ends_with(now.after) &&
        saved.size() >= now.before.size() + now.after.size()) {
      const std::string_view list =
          saved.substr(now.before.size(), saved.size() - now.before.size() - now.after.size());
      json said = {{"names", names}};
      said["stages"] = parse_json_strict(fmt::format("[{}]", list), "the state's job", kMaxJobBytes + 2);
      return parse_steering(said, names, lacking_too);
    }
    const json root = parse_json_strict(saved, "the state's job", kMaxJobBytes);
    const json* order = find_saved(root, "order");
    const json* steered = order == nullptr ? nullptr : find_saved(*order, "steered");
    if (steered == nullptr || !steered->is_object()) return std::nullopt;
    return parse_steering(*steered, names, lacking_too);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::StateMismatch) throw;
    // No JSON at all is told when the rest is looked at.
    if (!is_json(saved)) return std::nullopt;
    refuse_saved_job(error.what());
  }
}

std::optional<std::string> job_difference(std::string_view saved, std::string_view current, const Order& order,
                                          std::uint64_t position) {
  if (saved == current) return std::nullopt;
  const ParsedJob before = parse_job(saved);
  const ParsedJob now = parse_job(current);
  const OrderDifference of_order = order.difference_to(before.root["order"].dump(), position);
  if (of_order.refuses_unknown) check_sources(before.root["sources"]);
  Differences differences;
  compare_sources(before.root["sources"], now.root["sources"], of_order, differences);
  const bool explains_size = !differences.empty();
  for (const OrderDifference::Text& each : of_order.texts) {
    if (!(each.is_of_size && explains_size)) differences.push_back(each.text);
  }
  compare_skips(before.skip, now.skip, position, differences);
  compare_others(before.root, now.root, {"format", "order", "skip", "sources"}, "", differences);
  if (differences.empty()) return std::nullopt;
  std::string text = differences.front();
  for (std::size_t i = 1; i < differences.size(); ++i) {
    if (text.size() + differences[i].size() > kMostText) {
      return text + fmt::format("; and {} more", with_commas(differences.size() - i));
    }
    text += "; " + differences[i];
  }
  return text;
}

}  // namespace penstock
