#include "core/engine/row_memory.h"

#include "core/base/error.h"

#include <algorithm>

namespace penstock {

void bind_arenas(std::span<Row> rows, std::uint64_t most_bytes, ArenaBound& bound) noexcept {
  std::uint64_t kept = 0;
  for (Row& row : rows) {
    row.arena.bound_by(&bound);
    kept += row.arena.capacity_bytes();
  }
  if (kept > most_bytes / 2) {
    for (Row& row : rows) row.arena.release();
  }
  // What one row kept serves no other one: if it counted, it would depend on earlier rows what is refused.
  bound.restart(most_bytes);
}

void raise_too_long(const SourceInfo& of, std::span<const Row> rows, std::uint64_t bytes, std::uint64_t most_bytes) {
  const auto longest =
      std::max_element(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.length < b.length; });
  raise(
      ErrorKind::InvalidArgument,
      "{}: {} documents that are read together need {} bytes, at most {} are allowed; the longest, document {} of the "
      "view, has {} records: use a smaller batch size (or fetch), or raise max_bytes",
      of.path, with_commas(rows.size()), with_commas(bytes), with_commas(most_bytes), with_commas(longest->index),
      with_commas(longest->length));
}

}  // namespace penstock
