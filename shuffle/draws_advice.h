// What to do where the draws of a saved Weighted order (shuffle/weighted.h) were taken by another algorithm.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace penstock::shuffle {

/// How to end that run, to be put behind the words for the order's member `key`; else "". `saved` is untrusted.
std::string advice_on_draws(const std::string& key, const nlohmann::json& saved);

}  // namespace penstock::shuffle
