// Balance: which rows of a global batch each rank gets where that follows what they cost, instead of i mod R.
//
// Heaviest first, of equal costs the earlier position: each goes to the rank with least so far that has room, of equal
// ranks the lower one. Integers alone, so that every rank on every machine finds the same. Pure; any thread.
#pragma once

#include "core/job/share.h"

#include <cstdint>
#include <span>
#include <vector>

namespace penstock {

/// `out`: which of a batch's observations are the rows of share.rank, in the order of its rows. `costs` are those of
/// all observations of the batch, by position; a rank has `rows` rows and gets as many observations as i mod R gives
/// it. The rows are share.micro_batches equal parts, to which the rank's observations go by the same rule, so that the
/// k-th parts of all ranks cost alike; in a part they are by position.
void balance_rows(std::span<const std::uint64_t> costs, const Share& share, std::uint64_t rows,
                  std::vector<std::uint64_t>& out);

/// The same of every rank: out[rank].
void balance_ranks(std::span<const std::uint64_t> costs, const Share& share, std::uint64_t rows,
                   std::vector<std::vector<std::uint64_t>>& out);

}  // namespace penstock
