// How often this process was forked: what tells a child that threads and locks of its parent are not there.
//
// Counting costs a load where getpid() costs a system call, and cannot be fooled by a process number that is used
// again. Any thread.
#pragma once

#include <cstdint>

namespace penstock {

/// Forks between the loading of this library and this process: the same number means the same process.
std::uint64_t fork_count() noexcept;

}  // namespace penstock
