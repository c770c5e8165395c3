"""Memory and processor time of a peer's process and its workers, pages cached of its files, reads of the device."""

from __future__ import annotations

import ctypes
import math
import os
import resource
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np

MIB = 1 << 20


def processes(root: int) -> list[int]:
    """A process and all that descend from it."""
    found = [root]
    for pid in found:
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            try:
                found += [int(child) for child in children.read_text().split()]
            except OSError:
                continue
    return found


def memory() -> dict[str, float]:
    """Memory of this process and its workers, in MiB.

    Returns:
        Resident memory, shared pages divided among those that map them (Pss); the anonymous part of it; and the
        processes' own figures added up (Rss), where a page that several map counts for each of them.
    """
    sums = {"Pss": 0, "Pss_Anon": 0, "Rss": 0}
    for pid in processes(os.getpid()):
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        for line in lines:
            key, _, value = line.partition(":")
            if key in sums:
                sums[key] += int(value.split()[0])
    mib = {key: value / 1024 for key, value in sums.items()}
    return {"resident_mib": mib["Pss"], "anonymous_mib": mib["Pss_Anon"], "rss_mib": mib["Rss"]}


def cpu_seconds() -> float:
    """Processor time so far of this process and its workers, the kernel's part too; of workers in ticks of 10 ms."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = time.process_time() + ended.ru_utime + ended.ru_stime
    for pid in processes(os.getpid())[1:]:
        try:
            # After the name, which may hold spaces; 11 to 14: user's and kernel's time, and that of ended children.
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        found += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return found


def machine_seconds() -> tuple[float, float]:
    """Processor time so far of all processes of the machine, and time that its host gave to others (steal)."""
    user, nice, system, _, _, irq, softirq, steal = map(int, Path("/proc/stat").read_text().split()[1:9])
    tick = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + irq + softirq) / tick, steal / tick


def drop_cache(files: Iterable[Path]) -> None:
    """Lets the page cache forget the files; nothing else is touched."""
    for file in files:
        descriptor = os.open(file, os.O_RDONLY)
        try:
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def cached_mib(files: Iterable[Path]) -> float:
    """How much of the files the page cache holds, told by mincore."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
    page = os.sysconf("SC_PAGE_SIZE")
    pages = 0
    for file in files:
        mapped = np.memmap(file, np.uint8, "r")
        vector = np.empty(math.ceil(mapped.size / page), np.uint8)
        if libc.mincore(mapped.ctypes.data, mapped.size, vector.ctypes.data) != 0:
            raise OSError(ctypes.get_errno(), "mincore", str(file))
        pages += int((vector & 1).sum())
    return pages * page / MIB


def disk_read_bytes(path: Path) -> int:
    """Bytes that the device under `path` has read since the machine started; 0 where it does not tell."""
    device = path.stat().st_dev
    counters = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat")
    return int(counters.read_text().split()[2]) * 512 if counters.exists() else 0
