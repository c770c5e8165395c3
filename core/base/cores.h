// How much processor time the system gives this process. Any thread; files of the system are read at each call.
#pragma once

#include <cstdint>
#include <string>

namespace penstock {

/// Cores that this process may keep busy: those of its affinity mask, or what the quota of its control groups allows if
/// that is less; divided by `processes` that share them alike; rounded down, and at least 1. Down, because the kernel
/// stops a group that has used up its quota, the consumer with it, until the period ends.
unsigned usable_cores(std::uint64_t processes = 1);
/// The same, of `cores` in the affinity mask and the quota that the files below `root` tell.
unsigned usable_cores(std::uint64_t processes, unsigned cores, const std::string& root);

/// The lowest CPU quota of this process's control groups and of all groups above them, as a number of cores; infinity
/// where there is none. Version 2 (cpu.max) and version 1 (cpu.cfs_quota_us), where /proc/self/mountinfo says that they
/// are mounted; `root` precedes all paths. What cannot be read or understood is no quota.
double cpu_quota(const std::string& root = "");

}  // namespace penstock
