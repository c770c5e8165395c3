// How much memory a batch needs, and getting it. Free functions; one thread at a time for the same batch.
#pragma once

#include "core/batch/batch.h"

#include <cstdint>

namespace penstock {

/// Bytes that records and columns need, once the rows' lengths are known. Throws InvalidArgument for more than any
/// memory holds, and as Column::shape does.
[[nodiscard]] std::uint64_t needed_bytes(const Batch& batch);
/// The same of ragged rows, whose lengths are what a file says. Throws InvalidArgument if it is above
/// Batch::most_bytes.
[[nodiscard]] std::uint64_t bounded_bytes(const Batch& batch);
/// The byte of the slab where the first column begins that is not the records themselves.
[[nodiscard]] std::uint64_t columns_at(const Batch& batch);

/// Throws InvalidArgument for a plan with more rows than any memory holds.
void check_rows(const Batch& batch);
/// Own memory of at least `bytes`. Throws InvalidArgument where the system has none.
void ensure_slab(Batch& batch, std::uint64_t bytes);
/// InvalidArgument: the system has no memory for the batch.
[[noreturn]] void raise_no_memory(const Batch& batch);

}  // namespace penstock
