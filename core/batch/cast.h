// Casts: the values of one leaf of a row's records, converted and written densely: [records, dims…].
//
// Pure functions; any thread.
#pragma once

#include "core/batch/schema.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace penstock {

/// A scalar type in NumPy's terms: kind (b i u f c S V) and size. Little-endian.
struct ScalarType {
  char kind = 'i';
  std::uint32_t bytes = 8;
  bool operator==(const ScalarType&) const = default;
  /// "<i8", "|u1", "|S16".
  [[nodiscard]] std::string str() const;
  /// "int64", "uint16", "float32", "bool", else str(): for messages.
  [[nodiscard]] std::string name() const;
  static ScalarType parse(const std::string& text);  // also "int32", "float16", "bool"; throws InvalidArgument
};

/// Throws InvalidArgument if `from` cannot become `to` (a float to an integer, anything to or from bytes but itself,
/// …).
void check_cast(const Leaf& from, ScalarType to);

/// Whether `count` values of `from` and of `to` that are equal have the same bytes (where they fit).
bool has_same_bytes(const Leaf& from, ScalarType to);

/// What cast_leaf would throw, for a column that has_same_bytes and whose records, which hold nothing else, lie end to
/// end at `records`.
void check_values(const Leaf& leaf, const std::byte* records, std::uint64_t count, ScalarType type);

/// Writes leaf values of `count` records, which lie `stored_record_bytes` apart from `records` on (any alignment),
/// densely to `out` as `type`. Throws Error{InvalidArgument} naming the leaf, the value and the type when an integer
/// does not fit.
void cast_leaf(const Leaf& leaf, const std::byte* records, std::uint64_t stored_record_bytes, std::uint64_t count,
               ScalarType type, std::byte* out);

}  // namespace penstock
