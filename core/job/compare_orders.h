// Comparing an order with a saved one by their identities, JSON objects of which the saved one is untrusted.
//
// Pure functions; any thread.
#pragma once

#include "core/job/order_difference.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace penstock {

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
