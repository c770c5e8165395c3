#include "tests/native/core/job/saved_job.h"

#include "core/base/error.h"

#include <gtest/gtest.h>

#include <cstddef>

namespace penstock::testing {

bool is_refused(const nlohmann::json& saved, const std::string& now, std::uint64_t position,
                const CompareTexts& compare) {
  try {
    return difference_of(saved.dump(), now, position, compare).has_value();
  } catch (const Error&) {
    return true;
  }
}

void expect_every_change_is_refused(const std::string& text, std::uint64_t position, const CompareTexts& compare) {
  using nlohmann::json;
  const json good = json::parse(text);
  ASSERT_FALSE(is_refused(json::parse(good.dump(1)), text, position, compare));
  const auto try_with = [&](const json::json_pointer& at, const auto& change) {
    json changed = good;
    change(changed);
    EXPECT_TRUE(is_refused(changed, text, position, compare)) << at.to_string() << " in " << changed.dump();
  };
  const std::function<void(const json::json_pointer&)> walk = [&](const json::json_pointer& at) {
    const json& value = good.at(at);
    if (value.is_object()) try_with(at, [&](json& root) { root[at]["unknown"] = 1; });
    for (const json& other : {json("7"), json(7.5), json(nullptr), json({{"a", 1}}), json({1, 2, 3})}) {
      if (other != value) try_with(at, [&](json& root) { root[at] = other; });
    }
    if (value.is_number()) try_with(at, [&](json& root) { root[at] = value.get<double>(); });
    if (!at.empty()) {
      try_with(at, [&](json& root) {
        json& parent = root[at.parent_pointer()];
        if (parent.is_array()) {
          parent.erase(std::stoul(at.back()));
        } else {
          parent.erase(at.back());
        }
      });
    }
    if (!value.is_structured()) return;
    for (const auto& [key, each] : value.items()) {
      walk(value.is_array() ? at / static_cast<std::size_t>(std::stoul(key)) : at / key);
    }
  };
  walk(json::json_pointer());
}

}  // namespace penstock::testing
