// Jobs as texts, whose orders are known by their identities alone: what tests of saved states compare.
#pragma once

#include "core/job/order.h"
#include "core/job/order_difference.h"
#include "core/job/state.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::testing {

/// What an order says of a saved one: their identities, the position.
using CompareTexts = std::function<OrderDifference(std::string_view, std::string_view, std::uint64_t)>;

class TextOrder final : public Order {
 public:
  explicit TextOrder(std::string identity, CompareTexts compare = {})
      : identity_(std::move(identity)), compare_(std::move(compare)) {}
  void pick(std::uint64_t, std::uint64_t, std::span<Pick>) const override {}
  [[nodiscard]] std::uint64_t epoch_size() const override { return 1; }
  [[nodiscard]] std::uint64_t end(std::uint64_t) const override { return kNever; }
  [[nodiscard]] std::uint64_t fetch_end(std::uint64_t position) const override { return position + 1; }
  [[nodiscard]] std::string identity(std::uint64_t) const override { return identity_; }
  [[nodiscard]] OrderDifference difference_to(std::string_view saved, std::uint64_t position) const override {
    return compare_ ? compare_(saved, identity_, position) : Order::difference_to(saved, position);
  }

 private:
  std::string identity_;
  CompareTexts compare_;
};

inline const char* const kOldPrint = "3f2a0b1c4d5e6f708192a3b4c5d6e7f8";
inline const char* const kNewPrint = "9b1c0b1c4d5e6f708192a3b4c5d6e7f8";

inline std::string uniform(std::uint64_t seed, std::uint64_t size = 244) {
  return R"({"algorithm":1,"name":"uniform","seed":)" + std::to_string(seed) + R"(,"size":)" + std::to_string(size) +
         "}";
}
inline std::string windows(std::uint64_t window) {
  return R"({"kind":"windows","lookahead":1,"window":)" + std::to_string(window) + "}";
}

inline const SourceIdentity kA{kOldPrint, 1, 10, windows(16), ""};
inline const SourceIdentity kB{kNewPrint, 2, 20, windows(16), ""};
inline const SourceIdentity kC{kNewPrint, 2, 20, windows(32), ""};

inline SourceIdentity named(SourceIdentity source, const char* name) {
  source.name = name;
  return source;
}

inline std::string job_of(const std::string& order, const std::vector<SourceIdentity>& sources) {
  return job_json(TextOrder(order), sources, {});
}

/// job_difference() where `now` is the order of the job of that text.
inline std::optional<std::string> difference_of(std::string_view saved, std::string_view current,
                                                std::uint64_t position, const CompareTexts& compare = {}) {
  const nlohmann::json now = nlohmann::json::parse(current);
  return job_difference(saved, current, TextOrder(now["order"].dump(), compare), position);
}

/// Expects that a saved state differs or is refused if any object of it gets a member more, and any value goes, or
/// becomes one of another type.
void expect_every_change_is_refused(const std::string& text, std::uint64_t position, const CompareTexts& compare = {});
/// Whether it differs, or is refused.
bool is_refused(const nlohmann::json& saved, const std::string& now, std::uint64_t position,
                const CompareTexts& compare = {});

}  // namespace penstock::testing
