// Saved JSON: comparing what a state says, which is untrusted, with what holds now, and the words of a message for it.
//
// Pure functions; any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <set>
#include <string>

namespace penstock {

/// object[key]; null: there is none, or `object` is no object.
const nlohmann::json* find_saved(const nlohmann::json& object, const std::string& key);
/// Whether both are there and the same text: nlohmann's == takes 1 and 1.0 for equal, and large integers for the double
/// near them.
bool same_json(const nlohmann::json* a, const nlohmann::json* b);
/// Keys of either object, in order.
std::set<std::string> all_keys(const nlohmann::json& a, const nlohmann::json& b);

/// A value in a message: ASCII, short; "none" for null. Counts get their commas; seeds and the like are names.
std::string value_text(const nlohmann::json* value, bool is_count);
/// A key of untrusted text in a message.
std::string key_text(const std::string& key);
/// "1 shard", "1,000 records".
std::string counted(std::uint64_t count, const char* what);
/// "window: saved 16, now 32".
std::string difference_text(const std::string& what, const nlohmann::json* saved, const nlohmann::json* now,
                            bool is_count = true);

/// Throws StateMismatch: the saved job has what this version does not know.
[[noreturn]] void refuse_saved_job(const std::string& why);

}  // namespace penstock
