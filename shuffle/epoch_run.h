// How a run of positions falls into epochs, for the orders that repeat one epoch after another. Pure: any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock::shuffle {

/// The next positions of a run that lie in one epoch: offset, offset + stride, … (count of them), all below the size.
struct EpochRun {
  std::uint32_t epoch = 0;
  std::uint64_t offset = 0;
  std::size_t count = 0;
};

/// The first at most `wanted` >= 1 of the positions position, position + stride, … that lie in the epoch of `position`.
/// Throws InvalidArgument for a stride of 0 and for an epoch that a Pick cannot hold.
EpochRun epoch_run(std::uint64_t size, std::uint64_t position, std::uint64_t stride, std::size_t wanted);

/// The first position after `position` where no fetch that is open there goes on: in each epoch of `size` positions,
/// every lane has fetches of `fetch` of its positions, which begin and end together; at most the epoch's end.
std::uint64_t fetches_end(std::uint64_t size, std::uint64_t fetch, std::uint64_t lanes, std::uint64_t position);

/// Throws InvalidArgument unless an order of `size` observations can be: 1 to 2^52.
void check_order_size(const char* order, std::uint64_t size);

}  // namespace penstock::shuffle
