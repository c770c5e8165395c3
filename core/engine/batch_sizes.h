// Which batch sizes of a job a loader refuses when it is made: those that no memory it may take holds.
//
// Pure functions; any thread.
#pragma once

#include "core/batch/batch.h"
#include "core/job/job.h"

#include <cstdint>

namespace penstock {

/// Throws InvalidArgument where a batch of the job's schedule needs more than `most_bytes` for one rank, with all that
/// is held for each row, whatever its rows hold; and where rows go by their costs (`is_balanced`) and all ranks
/// together have 2^31 or more, since each rank lists them all. Sizes from the run's end on are no batches.
void check_batches(const Job& job, const Share& share, const BatchFormats& formats, std::uint64_t most_bytes,
                   bool is_balanced);

}  // namespace penstock
