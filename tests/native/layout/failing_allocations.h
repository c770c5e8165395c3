// Allocations that fail when a test wants them to. An executable that has failing_allocations.cpp has them for all of
// malloc, so exceptions have no memory either; under a sanitizer, which brings its own malloc, for operator new alone.
#pragma once

#include <cstdint>

namespace penstock::testing {

/// Whether allocations of the calling thread are among those that may fail. They are, unless it said otherwise.
void count_allocations_here(bool counts) noexcept;

/// From now on the `first`-th allocation (from 1) fails, and all that follow if `following`.
void fail_allocations(std::uint64_t first, bool following) noexcept;
void stop_failing_allocations() noexcept;
/// Since fail_allocations().
std::uint64_t failed_allocations() noexcept;

/// Blocks of memory that are in use.
std::int64_t blocks_in_use() noexcept;
/// Since the process began.
struct Allocated {
  std::uint64_t blocks = 0;
  std::uint64_t bytes = 0;
};
Allocated allocated() noexcept;

}  // namespace penstock::testing
