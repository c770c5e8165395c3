"""The library of this folder that LD_PRELOAD takes (inject.c): how it is built, and its functions."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "python"))

import _c_library

SOURCES = ("inject.c", "files.c", "ring.c")
COUNT, KILL, FAIL, SHORT, TURN = range(5)
#: As in inject.h.
KINDS = (
    "open", "create", "read", "write", "sync", "lock", "stat", "map", "list", "next", "name", "remove", "room", "copy",
    "close", "clone", "ring", "submit", "wait", "set up",
)  # fmt: skip
ALL = (1 << len(KINDS)) - 1
TURNS = 6  # the most errors that one kind of call has


def bits(*kinds: str) -> int:
    return sum(1 << KINDS.index(kind) for kind in kinds)


#: What changes the disk, or syncs it: a process that is killed at another call leaves what it would at one of these.
LEAVES = bits("create", "write", "sync", "name", "remove", "room", "copy", "clone")
#: These, and what is opened, locked and synced for them.
CHANGES = bits("open", "create", "write", "sync", "lock", "name", "remove", "room", "copy", "close", "clone")


def built(folder: Path) -> Path | None:
    """The library; None without a compiler of C."""
    return _c_library.built(folder / "inject.so", *(Path(__file__).parent / name for name in SOURCES))


def preloaded(library: Path, control: Path | None = None) -> dict[str, str]:
    """The environment of a program that runs under the library; `control` is shared by the processes that it starts."""
    shared = {} if control is None else {"PENSTOCK_INJECT": str(control)}
    return {**os.environ, "LD_PRELOAD": str(library), **shared}


class Injector:
    """The library that this process runs under."""

    def __init__(self) -> None:
        self._calls = ctypes.CDLL(None)
        for name in ("inject_log", "inject_what"):
            getattr(self._calls, name).restype = ctypes.c_char_p
        for name in ("inject_disarm", "inject_times"):
            getattr(self._calls, name).restype = ctypes.c_long

    @contextmanager
    def armed(
        self, mode: int, k: int = -1, error: int = 0, kinds: int = ALL, root: Path | None = None
    ) -> Iterator[None]:
        """Counts calls of these kinds below `root` (None: anywhere); at the k-th does what `mode` says.

        Args:
            mode: COUNT: nothing; KILL: ends the process, with code 77; FAIL: the call fails with `error`; TURN: with
                the `error`-th of those that its kind may have, and a disk that is full with it stays so; SHORT: all
                writes are short or interrupted.
            k: From 1 on.
            error: An errno, or a number.
            kinds: Bits of KINDS.
            root: Without links.
        """
        path = b"" if root is None else os.fsencode(root)
        self._calls.inject_arm(path, ctypes.c_uint(kinds), mode, ctypes.c_long(k), error)
        try:
            yield
        finally:
            self._calls.inject_disarm()

    @property
    def log(self) -> list[str]:
        """The calls that were counted."""
        return str(self._calls.inject_log().decode(errors="replace")).splitlines()

    @property
    def count(self) -> int:
        return int(self._calls.inject_disarm())

    @property
    def times(self) -> int:
        """How many calls failed or were short."""
        return int(self._calls.inject_times())

    @property
    def what(self) -> tuple[str, int, str] | None:
        """The first of them: its name, the errno (-1: it was short), and its path."""
        call, _, rest = self._calls.inject_what().decode(errors="replace").partition("\t")
        error, _, path = rest.partition("\t")
        return (call, int(error), path) if call else None

    @contextmanager
    def refusing(self, calls: dict[str, int]) -> Iterator[None]:
        """Each call of these names fails so, as on a file system that does not know it."""
        for call, error in calls.items():
            self._calls.inject_refuse(call.encode(), error)
        try:
            yield
        finally:
            self._calls.inject_allow()

    @contextmanager
    def matching(self, calls: str, end: str, *, after: bool = False) -> Iterator[None]:
        """Calls of these names give EIO where their path ends so; with `after` once a dataset.json was renamed."""
        self._calls.inject_match(calls.encode(), end.encode(), int(after))
        try:
            yield
        finally:
            self._calls.inject_allow()

    def ring(self, *, cold: bool, backwards: bool) -> None:
        """Of io_uring: the page cache seems empty; completions come in the reverse order."""
        self._calls.inject_ring(int(cold), int(backwards))
