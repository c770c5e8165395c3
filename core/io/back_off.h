// How long a far store waits before it asks again for what failed: exponential pauses with full jitter.
//
// Any thread. The order of batches does not depend on the pauses.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace penstock {

/// How often a server is asked that has not answered before.
constexpr std::uint32_t kFirstAttempts = 3;

/// A random time below min(5 s, 0.1 s × 2^(attempts - 1)), after this many failed attempts; at least one.
[[nodiscard]] std::chrono::milliseconds back_off(std::uint32_t attempts);

/// "no answer that will do in 60 s and 9 attempts; the last" — and what follows says what was wrong with it.
[[nodiscard]] std::string given_up(std::chrono::nanoseconds deadline, std::uint32_t attempts);

}  // namespace penstock
