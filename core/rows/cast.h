// Casts: the values of one leaf of a row's records, converted and written densely: [records, dims…].
//
// Pure functions; any thread.
#pragma once

#include "core/rows/scalar_type.h"
#include "core/rows/schema.h"

#include <cstddef>
#include <cstdint>

namespace penstock {

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
