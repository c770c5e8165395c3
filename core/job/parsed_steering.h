// Steering as a state has it. Pure; any thread.
#pragma once

#include "core/job/steering.h"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace penstock {

/// {"names":[…],"stages":[[begin,weight,…],…]}; untrusted. The entries are those of `names`. Throws Corruption for what
/// is none, StateMismatch for weights of a source that `names` lacks.
Steering parse_steering(const nlohmann::json& said, const std::vector<std::string>& names);

}  // namespace penstock
