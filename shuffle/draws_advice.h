// What to do where the draws of a saved order that draws by weights (shuffle/weighted.h) were taken by another
// algorithm.
#pragma once

#include "core/job/order_difference.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace penstock::shuffle {

/// How to end that run, to be put behind the words for the order's member `key`; else "". `saved` is untrusted.
std::string advice_on_draws(const std::string& key, const nlohmann::json& saved);

/// Order::difference_to of an order of this identity, with that advice.
OrderDifference drawn_difference(std::string_view saved, const std::string& identity, std::uint64_t position);

}  // namespace penstock::shuffle
