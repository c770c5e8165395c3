// read_column: a range of one column's values at once, for users of a whole column: labels of an order, a
// table.
//
// Reads whole blocks of columns.bin one after the other, and compares them with their check values. Any thread; waits.
#pragma once

#include "core/io/byte_store.h"
#include "layout/dataset.h"

#include <cstddef>
#include <cstdint>

namespace penstock::layout {

/// Writes values [first, first + count) of column number `column`, as they are given out, to `out`; `through` is the
/// way to read. Throws InvalidArgument (no such values), NotFound, IoError, Corruption.
void read_column(const Dataset& dataset, std::size_t column, std::uint64_t first, std::uint64_t count, std::byte* out,
                 const StoreChoice& through);

}  // namespace penstock::layout
