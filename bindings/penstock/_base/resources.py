"""How much of the machine a loader takes when it is not told."""

from __future__ import annotations

import functools
import os
from pathlib import Path

from penstock import _native
from penstock._base.ranks import local_world_size

# Beyond this many threads a reader of local files gains little.
_MOST_THREADS = 8


def default_threads() -> int:
    """Engine threads: as many as this process may use cores; 1 to 8."""
    return min(_MOST_THREADS, usable_cores())


def usable_cores() -> int:
    """Cores that this process may use, by affinity and its control group's quota, over the node's ranks; at least 1."""
    return _native.usable_cores(local_world_size())


def default_max_bytes() -> int:
    """Bytes for batches: a quarter of the memory that this process may use over the node's ranks."""
    return memory_bytes() // 4 // local_world_size()


@functools.cache
def memory_bytes() -> int:
    """Memory that this process may use: the machine's, or its control group's limit (v2 or v1) if that is lower."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *_cgroup_limits()])


def _cgroup_limits() -> list[int]:
    limits = []
    for path in (*_cgroup2_files(), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes")):
        try:
            text = path.read_text().strip()
        except OSError:
            continue
        if text.isdigit():  # "max" means none
            limits.append(int(text))
    return limits


def _cgroup2_files() -> list[Path]:
    """memory.max of this process's group and of all groups above it."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    relative = next((line[3:] for line in lines if line.startswith("0::")), "/")
    root = Path("/sys/fs/cgroup")
    group = root / relative.lstrip("/")
    return [folder / "memory.max" for folder in (group, *group.parents) if folder == root or root in folder.parents]
