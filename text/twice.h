// Keys that stand twice in one object: Python's reader of JSON lines refuses them, simdjson does not. One thread at a
// time.
#pragma once

#include <simdjson.h>

#include <string_view>
#include <vector>

namespace penstock::text {

class KeysTwice {
 public:
  /// Whether a key stands twice in `value`, or in anything within it.
  [[nodiscard]] bool within(simdjson::dom::element value);
  /// Whether two of the keys are the same; changes their order.
  [[nodiscard]] static bool among(std::vector<std::string_view>& keys);

 private:
  std::vector<std::string_view> keys_;  // of the object that is looked at
};

}  // namespace penstock::text
