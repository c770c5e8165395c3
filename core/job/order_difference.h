// OrderDifference: what an order says of the one that a state was saved with (Order::difference_to).
//
// Both are compared as their identities, JSON objects of which the saved one is untrusted. Values and pure functions;
// any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace penstock {

/// Keys of sources are JSON: their names, or their numbers where they have none.
using SourceKeys = std::set<std::string>;

struct OrderDifference {
  struct Text {
    std::string text;
    bool is_of_size = false;  // follows from another dataset or window, where there is one
  };
  /// In the order in which a message tells them.
  std::vector<Text> texts = {};

  /// The sources that each order uses before the position: of others no difference counts. None: all sources.
  std::optional<SourceKeys> saved_sources = {};
  std::optional<SourceKeys> sources = {};
  /// Of a saved source that is not used nothing is compared, so what is unknown of any is refused.
  bool refuses_unknown = false;
  /// Whether each source has an order of its own in both: then any may come and go, and `given` has …
  bool are_mixed = false;
  /// … about how many observations the saved job had given of each.
  std::map<std::string, std::uint64_t> given = {};
};

/// Tells of a member `key`, in which the two orders differ, in other words than "order's key: saved 1, now 2". False:
/// it does not.
using TellMember = std::function<bool(const std::string& key, const nlohmann::json& saved, const nlohmann::json& now,
                                      OrderDifference& out)>;
/// What messages call a stage; null: there is no such one.
using StageWords = std::function<std::string(const nlohmann::json* stage)>;

/// Member by member: orders of other names by their names and seeds alone.
void compare_orders(const nlohmann::json& saved, const nlohmann::json& now, const TellMember& tell,
                    OrderDifference& out);

/// `order` with only those of its "stages" that begin ("begin") before `position`.
nlohmann::json stages_before(nlohmann::json order, std::uint64_t position);
/// The first stage that differs: those after it are its consequences.
void compare_stages(const nlohmann::json& saved, const nlohmann::json& now, std::uint64_t position,
                    const StageWords& words, OrderDifference& out);
/// Where an untrusted stage begins, if it says so.
std::optional<std::uint64_t> begin_of_stage(const nlohmann::json& stage);

/// Of orders that have no sources of their own: `saved` and `now` are their identities. Stages that begin at or after
/// `position` are no difference; the first one decides at position 0, too. `tell` has the first word.
OrderDifference order_difference(std::string_view saved, std::string_view now, std::uint64_t position,
                                 const TellMember& tell = {});

}  // namespace penstock
