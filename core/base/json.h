// JSON from untrusted text: parsed strictly, its members fetched with checks.
//
// Strict: no duplicate keys, no nesting beyond kMaxJsonDepth, no text beyond a stated size, no string or number beyond
// kMaxJsonTokenBytes, numbers finite. Every failure is Corruption that begins with `what`, the name of the text. Values
// take up to 20 times the memory of their text, so a large text is checked without making them. Pure functions; any
// thread. nlohmann-json is slow to compile, so only .cpp files include all of it.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace penstock {

inline constexpr std::size_t kMaxJsonDepth = 32;
inline constexpr std::size_t kMaxJsonTextBytes = std::size_t{256} << 20;
inline constexpr std::size_t kMaxJsonTokenBytes = std::size_t{2} << 20;
inline constexpr std::size_t kMaxJsonOpenKeys = std::size_t{1} << 18;

/// The value that `text` denotes.
nlohmann::json parse_json_strict(std::string_view text, const std::string& what,
                                 std::size_t max_bytes = kMaxJsonTextBytes);

/// Empties a value when it goes. nlohmann's destructor of one that holds others asks for memory, and without it ends
/// the process: so whatever a thread of the engine parses needs this.
class JsonGuard {
 public:
  explicit JsonGuard(nlohmann::json& value) noexcept : value_(value) {}
  ~JsonGuard();
  JsonGuard(const JsonGuard&) = delete;
  JsonGuard& operator=(const JsonGuard&) = delete;

 private:
  nlohmann::json& value_;  // no deeper than kMaxJsonDepth
};
/// Throws as parse_json_strict does, and makes no values: what it keeps is the keys of the objects that are open, at
/// most kMaxJsonOpenKeys.
void check_json_strict(std::string_view text, const std::string& what, std::size_t max_bytes = kMaxJsonTextBytes);

/// object[key], which must exist. The result lives as long as `object`.
const nlohmann::json& get_member(const nlohmann::json& object, std::string_view key, const std::string& what);
/// object[key] or null if there is none; `object` must be an object.
const nlohmann::json* find_member(const nlohmann::json& object, std::string_view key, const std::string& what);

/// object[key], which must be an integer from 0 to 2^64 - 1 (no sign, no fraction, no exponent).
std::uint64_t get_u64(const nlohmann::json& object, std::string_view key, const std::string& what);
std::string get_string(const nlohmann::json& object, std::string_view key, const std::string& what);
bool get_bool(const nlohmann::json& object, std::string_view key, const std::string& what);
/// object[key], which must be an object (an array).
const nlohmann::json& get_object(const nlohmann::json& object, std::string_view key, const std::string& what);
const nlohmann::json& get_array(const nlohmann::json& object, std::string_view key, const std::string& what);

/// `value` itself as an integer from 0 to 2^64 - 1; `what` names it.
std::uint64_t as_u64(const nlohmann::json& value, const std::string& what);

}  // namespace penstock
