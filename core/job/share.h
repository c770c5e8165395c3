// Share: the rows of a global batch that are one rank's, and the number of rows of every rank's batch.
//
// Values and pure functions; any thread.
#pragma once

#include <cstdint>
#include <vector>

namespace penstock {

/// The part of a global batch's observations that is one rank's.
struct Share {
  std::uint64_t rank = 0;
  std::uint64_t world_size = 1;
  std::uint64_t micro_batches = 1;  // equal parts of each rank's rows
};

/// The treatment of a global batch that is no multiple of the number of ranks: it is refused, or ranks that have a row
/// less get one that is padding.
enum class Uneven { Refuse, Pad };

/// Rows of each rank's batch, padding included: size / R rounded up, to a multiple of the micro-batches; UINT64_MAX
/// where that is more.
std::uint64_t batch_rows(std::uint64_t size, const Share& share) noexcept;

/// Numbers of ranks that divide `size`, rising; from 2^32 on those alone whose primes, but for one, are below 2^16.
std::vector<std::uint64_t> ranks_that_divide(std::uint64_t size);

/// Numbers of ranks that get equal shares of `size`, which the micro-batches divide: rising, as ranks_that_divide();
/// none where `micro_batches` does not divide `size`.
std::vector<std::uint64_t> ranks_that_suit(std::uint64_t size, std::uint64_t micro_batches);

/// Throws InvalidArgument where the ranks do not divide a global batch of `size`, or the micro-batches a rank's rows of
/// it: the message says which batch sizes and numbers of ranks suit both.
void check_divides(std::uint64_t size, const Share& share);

}  // namespace penstock
