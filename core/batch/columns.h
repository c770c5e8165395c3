// Columns: how the records of a row become the contiguous arrays that a training step wants.
//
// A column takes one leaf of the schema, converts each value and writes it densely: [rows, length, dims…]. It is made
// by the thread that read the row, while the row is still in its cache. Thread rule: pure functions; any thread.
#pragma once

#include "core/batch/schema.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace penstock {

/// A scalar type in NumPy's terms: kind (b i u f c S V) and size. Little-endian.
struct ScalarType {
  char kind = 'i';
  std::uint32_t bytes = 8;
  bool operator==(const ScalarType&) const = default;
  /// "<i8", "|u1", "|S16".
  [[nodiscard]] std::string str() const;
  static ScalarType parse(const std::string& text);  // also "int32", "float16", "bool"; throws InvalidArgument
};

/// One array of a batch: leaf `leaf` as `type`, from record `skip` of each row; `shorten` records fewer than the row
/// has (inputs: skip 0, shorten 1; labels: skip 1, shorten 1; a field itself: 0, 0).
struct Column {
  std::string name;
  std::size_t leaf = 0;
  ScalarType type;
  std::uint64_t skip = 0;
  std::uint64_t shorten = 0;
  /// Bytes of one record in the column: type.bytes * leaf.count().
  std::uint64_t record_bytes = 0;
  /// The records as read already are the column, but for a sign that their values do not need: nothing is copied.
  bool in_place = false;
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
