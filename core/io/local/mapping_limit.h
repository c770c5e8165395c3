// The limit of mappings of a process (vm.max_map_count), and what a store takes of it. Any thread.
#pragma once

#include <cstddef>

namespace penstock {

/// How many files a store keeps mapped: three quarters of what the kernel allows a process, less what this process has
/// mapped already; at least 1. A mapping needs no descriptor once it is made, so their limit does not count. 8,192
/// where /proc does not tell.
std::size_t mappings_share();

}  // namespace penstock
