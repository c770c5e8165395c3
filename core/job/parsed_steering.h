// Steering as a state has it. Pure; any thread.
#pragma once

#include "core/job/steering.h"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace penstock {

/// {"names":[…],"stages":[[begin,weight,…],…]}; untrusted. The entries are those of `names`. Throws Corruption for what
/// is none, StateMismatch for weights of a source that `names` lacks; where `lacking_too`, entries are left without
/// those, and one that has no others is left out.
Steering parse_steering(const nlohmann::json& said, const std::vector<std::string>& names, bool lacking_too = false);

}  // namespace penstock
