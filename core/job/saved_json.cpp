#include "core/job/saved_json.h"

#include "core/base/error.h"

#include <nlohmann/json.hpp>

namespace penstock {

using nlohmann::json;

const json* find_saved(const json& object, const std::string& key) {
  const auto at = object.find(key);
  return at == object.end() ? nullptr : &*at;
}

bool same_json(const json* a, const json* b) {
  return a != nullptr && b != nullptr && a->type() == b->type() && *a == *b && a->dump() == b->dump();
}

std::set<std::string> all_keys(const json& a, const json& b) {
  std::set<std::string> keys;
  for (const auto& [key, value] : a.items()) keys.insert(key);
  for (const auto& [key, value] : b.items()) keys.insert(key);
  return keys;
}

std::string value_text(const json* value, bool is_count) {
  if (value == nullptr) return "none";
  if (value->is_number_unsigned() && is_count) return with_commas(value->get<std::uint64_t>());
  std::string text = value->dump(-1, ' ', true);
  if (value->is_string()) text = text.substr(1, text.size() - 2);
  if (text.size() > 80) text = text.substr(0, 77) + "...";
  return text;
}

std::string key_text(const std::string& key) {
  const json name = key;
  return value_text(&name, false);
}

std::string counted(std::uint64_t count, const char* what) {
  return fmt::format("{} {}{}", with_commas(count), what, count == 1 ? "" : "s");
}

std::string difference_text(const std::string& what, const json* saved, const json* now, bool is_count) {
  return fmt::format("{}: saved {}, now {}", what, value_text(saved, is_count), value_text(now, is_count));
}

void refuse_saved_job(const std::string& why) {
  raise(ErrorKind::StateMismatch, "the state's job is not one that this penstock knows: {}", why);
}

}  // namespace penstock
