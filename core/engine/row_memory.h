// Memory of rows that are read together, beside that of their records: their arenas, and how much all may take.
//
// Free functions; one thread at a time for the same rows.
#pragma once

#include "core/rows/arena.h"
#include "core/rows/source.h"

#include <cstdint>
#include <span>

namespace penstock {

/// Lets the arenas of `rows`, which are about to be restarted, take `most_bytes` together. What they kept is let go if
/// it is so much that little could be added.
void bind_arenas(std::span<Row> rows, std::uint64_t most_bytes, ArenaBound& bound) noexcept;

/// Throws InvalidArgument: `rows`, which are ragged and of one source, need `bytes` together, and `most_bytes` are
/// allowed.
[[noreturn]] void raise_too_long(const SourceInfo& of, std::span<const Row> rows, std::uint64_t bytes,
                                 std::uint64_t most_bytes);

}  // namespace penstock
