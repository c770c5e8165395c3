#include "core/job/state.h"

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/job/cursor.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <set>

// A job of format 1:
//   {"format":1,
//    "order":{"name":…,"seed":…,…}          Order::identity; with "stages":[{"begin":…,…},…] where it has stages, and
//                                           "orders":{source:…} of the sources that these name
//    "skip":[[begin,end],…],
//    "sources":[{"dataset":{"fingerprint":…,"records":…,"shards":…},"view":{"kind":…,…}},…]}

namespace penstock {
namespace {

using nlohmann::json;

constexpr std::uint64_t kJobFormat = 1;
constexpr std::size_t kMaxJobBytes = std::size_t{64} << 20;
constexpr std::size_t kMostText = 320;  // of differences, so that a message stays short

using Differences = std::vector<std::string>;

// ---- words

/// A value in a message: ASCII, short. Counts get their commas; seeds and the like are names, not counts.
std::string value_text(const json* value, bool is_count) {
  if (value == nullptr) return "none";
  if (value->is_number_unsigned() && is_count) return with_commas(value->get<std::uint64_t>());
  std::string text = value->dump(-1, ' ', true);
  if (value->is_string()) text = text.substr(1, text.size() - 2);
  if (text.size() > 80) text = text.substr(0, 77) + "...";
  return text;
}

void add_difference(Differences& out, const std::string& what, const json* saved, const json* now,
                    bool is_count = true) {
  out.push_back(fmt::format("{}: saved {}, now {}", what, value_text(saved, is_count), value_text(now, is_count)));
}

/// A key of untrusted text in a message.
std::string key_text(const std::string& key) {
  const json name = key;
  return value_text(&name, false);
}

std::string counted(std::uint64_t count, const char* what) {
  return fmt::format("{} {}{}", with_commas(count), what, count == 1 ? "" : "s");
}

const json* find(const json& object, const std::string& key) {
  const auto at = object.find(key);
  return at == object.end() ? nullptr : &*at;
}

/// Whether both are the same text: nlohmann's == takes 1 and 1.0 for equal, and large integers for the double near
/// them.
bool same(const json* a, const json* b) {
  return a != nullptr && b != nullptr && a->type() == b->type() && *a == *b && a->dump() == b->dump();
}

/// Keys of either object, in order.
std::set<std::string> all_keys(const json& a, const json& b) {
  std::set<std::string> keys;
  for (const auto& [key, value] : a.items()) keys.insert(key);
  for (const auto& [key, value] : b.items()) keys.insert(key);
  return keys;
}

// ---- a parsed job

struct ParsedJob {
  json root;
  Ranges skip;
};

[[noreturn]] void refuse_job(const std::string& why) {
  raise(ErrorKind::StateMismatch, "the state's job is not one that this penstock knows: {}", why);
}

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
    if (find(source, "name") != nullptr && !names.insert(get_string(source, "name", "job: source")).second) {
      raise(ErrorKind::Corruption, "job: two sources have one name");
    }
    get_string(dataset, "fingerprint", "job: dataset");
    get_u64(dataset, "records", "job: dataset");
    get_u64(dataset, "shards", "job: dataset");
    get_object(source, "view", "job: source");
  }
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
    if (format != kJobFormat) {
      raise(ErrorKind::Corruption, "format {}, this penstock reads format {}", with_commas(format), kJobFormat);
    }
    check_shape(job.root);
    job.skip = parse_skip(get_array(job.root, "skip", "job"));
  } catch (const Error& error) {
    refuse_job(error.what());
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
    const json* a = find(saved, key);
    const json* b = find(now, key);
    if (!same(a, b)) add_difference(out, prefix + key_text(key), a, b);
  }
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
  const json* saved_kind = find(saved_view, "kind");
  const json* now_kind = find(now_view, "kind");
  if (value_text(saved_kind, false) != value_text(now_kind, false)) {
    add_difference(out, prefix + "view", saved_kind, now_kind);
    return;
  }
  for (const std::string& key : all_keys(saved_view, now_view)) {
    const json* a = find(saved_view, key);
    const json* b = find(now_view, key);
    if (!same(a, b)) add_difference(out, prefix + key_text(key), a, b);
  }
}

/// Stages that begin before `position`.
json stages_before(const json& stages, std::uint64_t position) {
  json kept = json::array();
  for (const json& stage : stages) {
    const json* begin = stage.is_object() ? find(stage, "begin") : nullptr;
    const bool later = begin != nullptr && begin->is_number_unsigned() && begin->get<std::uint64_t>() >= position;
    if (!later) kept.push_back(stage);
  }
  return kept;
}

/// The names of sources that stages have, or none where one does not say.
std::optional<std::set<std::string>> named_sources(const json& stages) {
  std::set<std::string> named;
  for (const json& stage : stages) {
    const json* list = stage.is_object() ? find(stage, "sources") : nullptr;
    if (list == nullptr || !list->is_array()) return std::nullopt;
    for (const json& key : *list) named.insert(key.dump());
  }
  return named;
}

/// The same of an order's stages; none where it has none.
std::optional<std::set<std::string>> sources_of_stages(const json& order) {
  const json* stages = find(order, "stages");
  if (stages == nullptr || !stages->is_array()) return std::nullopt;
  return named_sources(*stages);
}

/// The order with only those of its stages that begin before `position`, and the orders of their sources.
json order_before(json order, std::uint64_t position) {
  const auto stages = order.find("stages");
  if (stages == order.end() || !stages->is_array()) return order;
  *stages = stages_before(*stages, position);
  const auto orders = order.find("orders");
  const auto named = named_sources(*stages);
  if (orders == order.end() || !orders->is_object() || !named) return order;
  json kept = json::object();
  for (const auto& [name, each] : orders->items()) {
    if (named->contains(json(name).dump())) kept[name] = each;
  }
  *orders = std::move(kept);
  return order;
}

/// Whether sources have orders of their own and stages tell when each is used.
bool is_mixture(const json& order) {
  const json* stages = find(order, "stages");
  const json* orders = find(order, "orders");
  return stages != nullptr && stages->is_array() && orders != nullptr && orders->is_object();
}

void check_keys(const json& object, const std::set<std::string_view>& known, const std::string& what) {
  for (const auto& [key, value] : object.items()) {
    if (!known.contains(key)) refuse_job(fmt::format("{} has {}, which is unknown", what, key_text(key)));
  }
}

/// "slice" for "slice" and "slice2": sub-views of sub-views number their members.
std::string_view without_number(std::string_view key) {
  return key.substr(0, key.find_last_not_of("0123456789") + 1);
}

/// Refuses members that no view of this version has: views of later stages are compared with none.
void check_view(const json& view, const std::string& what) {
  static const std::map<std::string_view, std::set<std::string_view>> of_kind{
      {"windows", {"kind", "lookahead", "phase", "window"}},
      {"documents", {"begin_of_document", "end_of_document", "kind"}},
      {"packed", {"begin_of_document", "end_of_document", "fit", "group", "kind", "long", "multiple_of", "window"}},
      {"entries", {"kind"}},
      {"collection", {"kind"}}};
  static const std::set<std::string_view> of_parts{"cut", "selection", "slice", "split"};
  const json* kind = find(view, "kind");
  const auto known =
      kind != nullptr && kind->is_string() ? of_kind.find(kind->get_ref<const std::string&>()) : of_kind.end();
  if (known == of_kind.end()) {
    refuse_job(fmt::format("{} is of an unknown kind, {}", what, value_text(kind, false)));
  }
  for (const auto& [key, value] : view.items()) {
    if (known->second.contains(key) || of_parts.contains(without_number(key))) continue;
    refuse_job(fmt::format("{} has {}, which is unknown", what, key_text(key)));
  }
}

/// How stages name each source: by its name, or its number where it has none.
std::vector<std::string> source_keys(const json& sources) {
  std::vector<std::string> keys;
  for (const json& source : sources) {
    const json* name = find(source, "name");
    keys.push_back(name != nullptr && name->is_string() ? name->dump() : std::to_string(keys.size()));
  }
  return keys;
}

std::string source_text(const std::string& key) {
  const json name = json::parse(key);
  return value_text(&name, false);
}

/// Refuses what a saved mixture says of sources that none of its stages uses, and members of sources that this version
/// does not know: of a source that only later stages use nothing is compared.
void check_mixture(const json& saved) {
  const json& order = saved["order"];
  if (!is_mixture(order)) return;
  const auto used = sources_of_stages(order);
  for (const auto& [name, each] : order["orders"].items()) {
    if (used && !used->contains(json(name).dump())) {
      refuse_job(fmt::format("it has an order of source {}, which no stage uses", key_text(name)));
    }
  }
  const std::vector<std::string> keys = source_keys(saved["sources"]);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const json& source = saved["sources"][i];
    const std::string what = fmt::format("source {}", source_text(keys[i]));
    check_keys(source, {"dataset", "name", "view"}, what);
    check_keys(source["dataset"], {"fingerprint", "records", "shards"}, what + "'s dataset");
    check_view(source["view"], what + "'s view");
  }
}

/// The sources that the order's stages use, by their keys; all of them where stages do not say.
std::map<std::string, const json*> used_sources(const json& order, const json& sources) {
  const std::vector<std::string> keys = source_keys(sources);
  std::map<std::string, const json*> used;
  for (std::size_t i = 0; i < keys.size(); ++i) used.emplace(keys[i], &sources[i]);
  const auto named = sources_of_stages(order);
  if (named) std::erase_if(used, [&](const auto& source) { return !named->contains(source.first); });
  return used;
}

// ---- stages

struct StageWeight {
  std::string source;
  std::uint64_t weight;
};

/// What an untrusted stage says of weights; empty if it says none.
std::vector<StageWeight> weights_of(const json& stage) {
  std::vector<StageWeight> weights;
  const json* sources = stage.is_object() ? find(stage, "sources") : nullptr;
  const json* numbers = stage.is_object() ? find(stage, "weights") : nullptr;
  if (sources == nullptr || numbers == nullptr || !sources->is_array() || !numbers->is_array()) return weights;
  for (std::size_t i = 0; i < std::min(sources->size(), numbers->size()); ++i) {
    const json& number = (*numbers)[i];
    weights.push_back({(*sources)[i].dump(), number.is_number_unsigned() ? number.get<std::uint64_t>() : 0});
  }
  return weights;
}

std::optional<std::uint64_t> begin_of(const json& stage) {
  const json* begin = stage.is_object() ? find(stage, "begin") : nullptr;
  if (begin == nullptr || !begin->is_number_unsigned()) return std::nullopt;
  return begin->get<std::uint64_t>();
}

/// About how many observations of a source the saved job had given: each stage keeps to its weights.
std::string given_text(const json& order, const std::string& key, std::uint64_t position) {
  const json* stages = find(order, "stages");
  if (stages == nullptr || !stages->is_array()) return "";
  long double given = 0;
  long double share = 0;
  for (std::size_t i = 0; i < stages->size(); ++i) {
    const std::uint64_t end = i + 1 < stages->size() ? begin_of((*stages)[i + 1]).value_or(position) : position;
    long double sum = 0;
    long double own = 0;
    for (const auto& [source, weight] : weights_of((*stages)[i])) {
      sum += static_cast<long double>(weight);
      own += source == key ? static_cast<long double>(weight) : 0;
    }
    if (sum > 0) share = own / sum;  // where a stage says no weights, those before it hold
    const std::uint64_t begin = begin_of((*stages)[i]).value_or(end);
    if (begin < end) given += static_cast<long double>(end - begin) * share;
  }
  const auto count = static_cast<std::uint64_t>(given + 0.5L);
  return fmt::format("; about {} of it had been given", counted(count, "observation"));
}

std::string stage_text(const json* stage) {
  if (stage == nullptr) return "no such stage";
  std::string text;
  for (const auto& [source, weight] : weights_of(*stage)) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", source_text(source), with_commas(weight));
  }
  const std::string begin = with_commas(begin_of(*stage).value_or(0));
  if (const json* end = find(*stage, "end"); end != nullptr && text.empty()) {
    return fmt::format("the run's end at position {}, by which the group from {} is mixed", value_text(end, true),
                       begin);
  }
  if (text.empty()) return value_text(stage, false);
  if (const json* window = find(*stage, "window")) text += " in windows of " + value_text(window, true);
  text += " from position " + begin;
  for (const auto& [key, value] : stage->items()) {
    if (key == "begin" || key == "sources" || key == "weights" || key == "window") continue;
    text += fmt::format(", {} {}", key_text(key), value_text(&value, true));
  }
  return text;
}

/// The first stage that differs: those after it are its consequences.
void compare_stages(const json& saved, const json& now, std::uint64_t position, Differences& out) {
  for (std::size_t i = 0; i < std::max(saved.size(), now.size()); ++i) {
    const json* a = i < saved.size() ? &saved[i] : nullptr;
    const json* b = i < now.size() ? &now[i] : nullptr;
    if (same(a, b)) continue;
    const std::uint64_t begin = begin_of(a != nullptr ? *a : *b).value_or(position);
    const std::uint64_t end = i + 1 < saved.size() ? begin_of(saved[i + 1]).value_or(position) : position;
    out.push_back(fmt::format("stage {}: saved {}, now {}; {} had been given from there on", i, stage_text(a),
                              stage_text(b), counted(end - std::min(begin, end), "observation")));
    return;
  }
}

/// One member of an order. Draws by weight have two algorithms (shuffle/weighted.h), and a run ends as it began.
void add_order_difference(Differences& out, const std::string& what, const std::string& key, const json& order,
                          const json* saved, const json* now) {
  add_difference(out, fmt::format("{} {}", what, key_text(key)), saved, now);
  if (key != "algorithm" || find(order, "draws") == nullptr || saved == nullptr) return;
  if (*saved == 1) out.back() += ": its draws are systematic: give draws=\"systematic\" to the order to end that run";
  if (*saved == 2) out.back() += ": its draws are rounded: leave draws= of the order out to end that run";
}

/// Orders of the sources; where the seed differs, theirs are only its consequences. Of sources that one of the two does
/// not use its stages tell.
void compare_source_orders(const json& saved, const json& now, bool same_seed, bool size_explained, Differences& out) {
  const json& befores = saved["orders"];
  const json& afters = now["orders"];
  const auto saved_uses = sources_of_stages(saved);
  const auto now_uses = sources_of_stages(now);
  for (const std::string& name : all_keys(befores, afters)) {
    const std::string key = json(name).dump();
    if (saved_uses && now_uses && !(saved_uses->contains(key) && now_uses->contains(key))) continue;
    const json* before = find(befores, name);
    const json* after = find(afters, name);
    const std::string prefix = fmt::format("source {}: order", key_text(name));
    if (before == nullptr || after == nullptr || !before->is_object() || !after->is_object()) {
      if (!same(before, after)) add_difference(out, prefix, before, after);
      continue;
    }
    for (const std::string& member : all_keys(*before, *after)) {
      const json* a = find(*before, member);
      const json* b = find(*after, member);
      if (same(a, b) || (member == "seed" && !same_seed) || (member == "size" && size_explained)) continue;
      add_order_difference(out, prefix + "'s", member, *before, a, b);
    }
  }
}

/// `saved` and `now`: jobs whose orders have the stages that count.
void compare_sources(const json& saved, const json& now, std::uint64_t position, Differences& out) {
  const auto before = used_sources(saved["order"], saved["sources"]);
  const auto after = used_sources(now["order"], now["sources"]);
  const bool are_named = is_mixture(saved["order"]) && is_mixture(now["order"]);
  if (before.size() != after.size() && !are_named) {
    const json saved_count = before.size();
    const json now_count = after.size();
    add_difference(out, "number of sources", &saved_count, &now_count);
    return;
  }
  for (const auto& [key, source] : before) {
    const auto same = after.find(key);
    if (same == after.end()) {
      out.push_back(fmt::format("source {}: saved, but not of the job now{}", source_text(key),
                                are_named ? given_text(saved["order"], key, position) : ""));
    } else if (are_named) {
      Differences differences;
      compare_source(*source, *same->second, fmt::format("source {}: ", source_text(key)), differences);
      for (const std::string& each : differences) out.push_back(each + given_text(saved["order"], key, position));
    } else {
      compare_source(*source, *same->second, before.size() == 1 ? "" : fmt::format("source {}: ", source_text(key)),
                     out);
    }
  }
  const auto named = sources_of_stages(saved["order"]);
  for (const auto& [key, source] : after) {
    if (named && named->contains(key) && !before.contains(key)) {
      out.push_back(
          fmt::format("source {}: the saved stages use it, and the state says nothing of it", source_text(key)));
    }
  }
}

/// `size_explained`: another dataset or window has been told, of which another size is only the consequence.
void compare_order(const json& saved, const json& now, bool size_explained, std::uint64_t position, Differences& out) {
  const json* saved_name = find(saved, "name");
  const json* now_name = find(now, "name");
  const bool same_name = same(saved_name, now_name) || (saved_name == nullptr && now_name == nullptr);
  if (!same_name) add_difference(out, "order", saved_name, now_name);
  for (const std::string& key : all_keys(saved, now)) {
    const json* a = find(saved, key);
    const json* b = find(now, key);
    if (same(a, b) || key == "name") continue;
    if (key == "seed") {
      // An order without a seed has been named above.
      if (same_name || (a != nullptr && b != nullptr)) add_difference(out, "seed", a, b, false);
    } else if (same_name && a != nullptr && b != nullptr && key == "orders" && a->is_object() && b->is_object()) {
      const json* saved_seed = find(saved, "seed");
      const json* now_seed = find(now, "seed");
      compare_source_orders(saved, now, same(saved_seed, now_seed), size_explained, out);
    } else if (same_name && a != nullptr && b != nullptr && key == "stages" && a->is_array() && b->is_array()) {
      compare_stages(*a, *b, position, out);
    } else if (same_name && !(key == "size" && size_explained)) {
      add_order_difference(out, "order's", key, saved, a, b);
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
  json root;  // its objects keep their keys sorted, so dump() is canonical
  root["format"] = kJobFormat;
  root["order"] = parse_json_strict(order.identity(Order::kNever), "the order's identity");
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
  return root.dump();
}

std::optional<std::string> job_difference(std::string_view saved, std::string_view current, std::uint64_t position) {
  if (saved == current) return std::nullopt;
  ParsedJob before = parse_job(saved);
  ParsedJob now = parse_job(current);
  check_mixture(before.root);
  // At position 0 another dataset or order is another job all the same; but a mixture is all stages, and has given
  // nothing of any source there.
  const bool both_are = is_mixture(before.root["order"]) && is_mixture(now.root["order"]);
  const std::uint64_t end = both_are ? position : std::max<std::uint64_t>(position, 1);
  for (ParsedJob* job : {&before, &now}) job->root["order"] = order_before(std::move(job->root["order"]), end);
  Differences differences;
  compare_sources(before.root, now.root, position, differences);
  compare_order(before.root["order"], now.root["order"], !differences.empty(), position, differences);
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
