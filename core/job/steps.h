// Steps of a run: where its n-th batch begins. The inverse of Cursor::steps_before(). Pure; any thread.
#pragma once

#include "core/job/cursor.h"

#include <cstdint>

namespace penstock {

/// The position at which batch number `step` (from 0) of the run begins, by the cursor's schedule. About 64 counts of
/// batches. Throws InvalidArgument where the run has no such batch.
std::uint64_t begin_of_step(const Cursor& cursor, std::uint64_t step);

}  // namespace penstock
