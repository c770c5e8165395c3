// What differs between a mixture and an order that was saved, for the words in which a state is refused.
//
// Stages are compared up to a position, of each source its order and how much of it had been given. Pure; any thread.
#pragma once

#include "core/job/order_difference.h"

#include <cstdint>
#include <string_view>

namespace penstock::shuffle {

/// `now` is a mixture's identity, `saved` that of any order; untrusted. At position 0 a mixture has given nothing of
/// any source: of two mixtures the seeds alone count there. Throws StateMismatch where `saved` is a mixture and has an
/// order of a source that none of its stages uses.
OrderDifference mixture_difference(std::string_view saved, std::string_view now, std::uint64_t position);
/// The same of a steered mixture, without the weights that were set: they are the same in both, and give the sources
/// `set` before the position. Caps are left to the caller.
OrderDifference steered_difference(std::string_view saved, std::string_view now, std::uint64_t position,
                                   const SourceKeys& set);

}  // namespace penstock::shuffle
