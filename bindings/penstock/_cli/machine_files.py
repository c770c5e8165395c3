"""Files of this machine, for `penstock doctor`: a loader's reader, tried; a path's file system and cache."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

Found = dict[str, Any]

_MOST_FILES = 1_000  # that are looked at below a path
_PIECE = 4 << 20  # bytes of a file that are asked for at once
_MOST_PIECES = 256
_ALIGNED = 4_096


def readers() -> Found:
    """Loaders of a small dataset among the temporary files: io_uring, tried, and their own choices.

    Returns:
        `io_uring`: whether a read through it worked, `refusal`: why not, `reader` and `threads`: what a loader chooses
        that is not told.
    """
    import penstock

    with tempfile.TemporaryDirectory(prefix="penstock-doctor-") as folder:
        path = os.path.join(folder, "small")  # noqa: PTH118 - a string is wanted
        with penstock.Writer(path, {"token": "u2"}) as writer:
            writer.append(token=range(64))
        view = penstock.open(path).windows(8)
        common: dict[str, Any] = {"rank": 0, "world_size": 1, "framework": "numpy"}
        refusal = None
        try:
            with penstock.Loader(view, 2, reader="uring", **common) as loader:
                next(loader)
        except penstock.Error as error:
            refusal = _reason(str(error))
        with penstock.Loader(view, 2, **common) as loader:
            next(loader)
            return {
                "io_uring": refusal is None,
                "refusal": refusal,
                "io_uring_disabled": _setting("kernel/io_uring_disabled"),
                "reader": loader.reader,
                "threads": loader.threads,
            }


def _reason(message: str) -> str:
    """The kernel's words, which the message has in parentheses."""
    return message.partition("(")[2].partition(")")[0] or message


def _setting(name: str) -> int | None:
    try:
        return int(Path("/proc/sys", name).read_text())
    except (OSError, ValueError):
        return None


def of_path(path: str) -> Found:
    """The file system that a path lies on, whether it reads past the page cache, and how much the cache has of it."""
    found = os.statvfs(path)
    files = list(islice(_files(Path(path)), _MOST_FILES + 1))
    looked_at = files[:_MOST_FILES]
    return {
        "path": path,
        "file_system": _file_system(path),
        "free_bytes": found.f_bavail * found.f_frsize,
        "size_bytes": found.f_blocks * found.f_frsize,
        "direct_reads": _direct(looked_at),
        "files": len(looked_at),
        "more_files": len(files) > _MOST_FILES,
        "cached": _cached(looked_at),
    }


def _files(path: Path) -> Iterator[Path]:
    """Files that are not empty: the path, or those below it."""
    if path.is_file():
        yield path
        return
    for folder, _, names in os.walk(path):
        for name in sorted(names):
            file = Path(folder, name)
            if file.is_file() and file.stat().st_size:
                yield file


def _file_system(path: str) -> str | None:
    """Its type, as mount says it: of the mount point that holds the path's device."""
    device = os.stat(path).st_dev  # noqa: PTH116 - a string is at hand
    wanted = f"{os.major(device)}:{os.minor(device)}"
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        words, _, rest = line.partition(" - ")
        if words.split()[2] == wanted:
            return rest.split()[0]
    return None


def _direct(files: list[Path]) -> str | None:
    """ "yes", or the kernel's reason; None: there is no file to try with."""
    if not files:
        return None
    try:
        descriptor = os.open(files[0], os.O_RDONLY | os.O_DIRECT)
        try:
            with mmap.mmap(-1, _ALIGNED) as page:
                os.preadv(descriptor, [page], 0)
        finally:
            os.close(descriptor)
    except OSError as error:
        return os.strerror(error.errno or errno.EIO)
    return "yes"


def _cached(files: list[Path]) -> float | None:
    """The share of the files' pages that are in the page cache, by mincore(2); None: it may not be asked.

    Of much data pieces at even places are looked at. The kernel tells it to a file's owner, or who may write it.
    """
    pieces = [(file, begin) for file in files for begin in range(0, file.stat().st_size, _PIECE)]
    step = max(1, len(pieces) // _MOST_PIECES)
    pages = there = 0
    for file, begin in pieces[::step]:
        if not (os.access(file, os.W_OK) or file.stat().st_uid == os.geteuid()):
            return None
        found = _resident(file, begin)
        if found is None:
            return None
        pages, there = pages + len(found), there + sum(each & 1 for each in found)
    return there / pages if pages else None


def _resident(file: Path, begin: int) -> bytes | None:
    """mincore(2)'s answer for a piece of a file."""
    import numpy as np

    length = min(_PIECE, file.stat().st_size - begin)
    mapped = np.memmap(file, np.uint8, "r", begin, (length,))
    count = -(-length // mmap.PAGESIZE)
    answer = ctypes.create_string_buffer(count)
    library = ctypes.CDLL(None, use_errno=True)
    library.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
    return answer.raw if library.mincore(mapped.ctypes.data, length, answer) == 0 else None
