"""What makes a read cold: files out of the page cache, a bound on the memory that caches them, a usual read-ahead."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

READ_AHEAD_KIB = 128  # Linux' default; cloud images set up to 64 times as much, which flatters whoever maps files
GROUPS = Path("/sys/fs/cgroup")


def drop(files: Iterable[Path]) -> float:
    """Puts the files out of the page cache.

    Returns:
        The share of their pages that stayed all the same.
    """
    pages = resident = 0
    for file in files:
        with file.open("rb") as opened:
            os.fsync(opened.fileno())
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            found = resident_pages(opened.fileno())
        pages += len(found)
        resident += int(found.sum())
    return resident / max(1, pages)


def resident_pages(descriptor: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """For each page of a file whether the page cache holds it (mincore(2))."""
    size = os.fstat(descriptor).st_size
    if size == 0:
        return np.zeros(0, np.bool_)
    states = np.zeros(-(-size // mmap.PAGESIZE), np.uint8)
    with mmap.mmap(descriptor, size, prot=mmap.PROT_READ) as mapping:
        view = np.frombuffer(mapping, np.uint8)
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mincore(
            ctypes.c_void_p(view.ctypes.data), ctypes.c_size_t(size), states.ctypes.data_as(ctypes.c_void_p)
        ):
            raise OSError(ctypes.get_errno(), "mincore")
        del view  # else the mapping cannot be closed
    return (states & 1).astype(np.bool_)


@contextlib.contextmanager
def read_ahead(path: Path) -> Iterator[str]:
    """Sets the read-ahead of the device that `path` is on to READ_AHEAD_KIB and in the end back; gives words on it."""
    setting = read_ahead_setting(path)
    if setting is None:
        yield "read-ahead unknown"
        return
    before = setting.read_text().strip()
    try:
        setting.write_text(f"{READ_AHEAD_KIB}\n")
    except OSError:
        yield f"read-ahead {before} KiB (may not be set here)"
        return
    try:
        yield f"read-ahead {READ_AHEAD_KIB} KiB"
    finally:
        setting.write_text(f"{before}\n")


def read_ahead_setting(path: Path) -> Path | None:
    """The file with the read-ahead of the device, or of the disk that it is a part of; None where there is none."""
    number = path.stat().st_dev
    device = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve()
    settings = [folder / "queue" / "read_ahead_kb" for folder in (device, device.parent)]
    return next((setting for setting in settings if setting.exists()), None)


@contextlib.contextmanager
def memory_bound(limit: int) -> Iterator[tuple[Path | None, str]]:
    """A memory cgroup (v1 or v2) of `limit` bytes, page cache included.

    Gives:
        The file that a process writes its number into to be bound, None where that is not possible; words on it.
    """
    kinds = ((GROUPS / "memory", "memory.limit_in_bytes"), (GROUPS, "memory.max"))
    for parent, setting in kinds:
        group = parent / f"penstock-bench-{os.getpid()}"
        with contextlib.suppress(OSError):
            group.mkdir()
            try:
                (group / setting).write_text(str(limit))
            except OSError:
                group.rmdir()
                raise
            break
    else:
        yield None, "no memory cgroup here"
        return
    try:
        yield group / "cgroup.procs", f"memory cgroup of {limit >> 20} MiB"
    finally:
        group.rmdir()
