// Share: which of a global batch's rows are one rank's, and how many rows every rank's batch has.
//
// Values and pure functions; any thread.
#pragma once

#include <cstdint>
#include <vector>

namespace penstock {

/// Which of a global batch's observations are one rank's.
struct Share {
  std::uint64_t rank = 0;
  std::uint64_t world_size = 1;
  std::uint64_t micro_batches = 1;  // equal parts of each rank's rows
};

/// What becomes of a global batch that is no multiple of the number of ranks: it is refused, or ranks that have a row
/// less get one that is padding.
enum class Uneven { Refuse, Pad };

/// Rows of each rank's batch, padding included: size / R rounded up, to a multiple of the micro-batches; UINT64_MAX
/// where that is more.
std::uint64_t batch_rows(std::uint64_t size, const Share& share) noexcept;

/// Numbers of ranks that divide `size`, rising; from 2^32 on those alone whose primes, but for one, are below 2^16.
std::vector<std::uint64_t> ranks_that_divide(std::uint64_t size);

/// Throws InvalidArgument where the ranks do not divide a global batch of `size`, or the micro-batches a rank's rows of
/// it: the message says what would do.
void check_divides(std::uint64_t size, const Share& share);

}  // namespace penstock
