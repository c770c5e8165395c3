#include "text/twice.h"

#include "text/json_values.h"

#include <algorithm>

namespace penstock::text {
namespace {

constexpr std::size_t kFewKeys = 16;  // up to here each is compared with each: most differ in length

}  // namespace

bool KeysTwice::among(std::vector<std::string_view>& keys) {
  if (keys.size() > kFewKeys) {
    std::sort(keys.begin(), keys.end());
    return std::adjacent_find(keys.begin(), keys.end()) != keys.end();
  }
  for (auto at = keys.begin(); at != keys.end(); ++at) {
    if (std::find(keys.begin(), at, *at) != at) return true;
  }
  return false;
}

bool KeysTwice::within(simdjson::dom::element value) {
  if (value.is_array()) {
    for (const auto item : known_as<simdjson::dom::array>(value)) {
      if ((item.is_object() || item.is_array()) && within(item)) return true;
    }
    return false;
  }
  if (!value.is_object()) return false;
  const auto fields = known_as<simdjson::dom::object>(value);
  keys_.clear();
  for (auto at = fields.begin(); at != fields.end(); ++at) keys_.push_back(at.key());
  if (among(keys_)) return true;
  for (auto at = fields.begin(); at != fields.end(); ++at) {
    if (within(at.value())) return true;
  }
  return false;
}

}  // namespace penstock::text
