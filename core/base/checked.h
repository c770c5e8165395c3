// Checked arithmetic for sizes that come from a file or a user: overflow is an error, never a wrap.
#pragma once

#include "core/base/error.h"

#include <cstdint>

namespace penstock {

/// a * b, or Error{kind} naming `what`.
inline std::uint64_t checked_mul(std::uint64_t a, std::uint64_t b, const char* what,
                                 ErrorKind kind = ErrorKind::Corruption) {
  std::uint64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) raise(kind, "{}: {} x {} does not fit 64 bits", what, a, b);
  return result;
}

/// a + b, or Error{kind} naming `what`.
inline std::uint64_t checked_add(std::uint64_t a, std::uint64_t b, const char* what,
                                 ErrorKind kind = ErrorKind::Corruption) {
  std::uint64_t result = 0;
  if (__builtin_add_overflow(a, b, &result)) raise(kind, "{}: {} + {} does not fit 64 bits", what, a, b);
  return result;
}

}  // namespace penstock
