"""A bound for what engines keep of text: the memory of this process tells when they are to be made anew."""

from __future__ import annotations

import os
import threading
from pathlib import Path

_STATM = Path("/proc/self/statm")  # proc(5): pages: size, resident, shared, …
_PAGE = os.sysconf("SC_PAGE_SIZE")


def private_bytes() -> int:
    """Memory of this process that holds no file's pages; 0 where that cannot be known."""
    try:
        _, resident, shared = _STATM.read_bytes().split()[:3]
    except (OSError, ValueError):
        return 0
    return (int(resident) - int(shared)) * _PAGE


class Caches:
    """The memory that the engines of one process keep, together. Any thread.

    Their library neither tells how much that is nor bounds it, so the growth of the process stands for it: past three
    eighths of what all may have (a table that grows is there twice for a while, and the allocator keeps some), each is
    made anew.
    """

    def __init__(self, bytes_each: int) -> None:
        """`bytes_each` is what one engine may take."""
        self._each = bytes_each
        self._lock = threading.Lock()
        self._engines = 0
        self._generation = 0
        self._floor = 0
        self._level = 0

    def join(self) -> int:
        """One more engine, which keeps nothing yet; the generation that it is of."""
        with self._lock:
            if self._engines == 0:
                self._floor = private_bytes()
            self._engines += 1
            self._level = self._least_level()
            return self._generation

    def _least_level(self) -> int:
        return self._floor + self._engines * self._each * 3 // 8

    def are_full(self, generation: int) -> bool:
        """True if an engine of this generation is to be made anew."""
        with self._lock:
            if generation == self._generation and private_bytes() > self._level:
                self._generation += 1
            return generation < self._generation

    def dropped(self) -> int:
        """One engine was made anew; the generation that it is of now."""
        with self._lock:
            # Memory that stays is another's, or is used again: only what comes to it counts.
            self._level = max(self._least_level(), private_bytes() + self._each // 4)
            return self._generation
