"""A limit, and the trials that it takes: what space.py, memory.py and the others each define."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from bench import Bench, NotHereError
from verbs import Verb

MS_RDONLY, MS_REMOUNT, MNT_DETACH = 1, 32, 2
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Tried:
    """One trial: its limit in words, and how it ended; "skipped" where not even the beginning had room."""

    limit: str
    outcome: str


class Matter(Protocol):
    """One limit."""

    name: str

    def verbs(self, bench: Bench) -> list[Verb]:
        """Those that it is tried on; may raise NotHereError."""

    def trials(self, bench: Bench, verb: Verb, is_short: bool) -> list[Any]:
        """Limits, the same each time; a trial is repeated by its number."""

    def run(self, bench: Bench, verb: Verb, limit: Any) -> Tried:
        """One trial; may raise WrongError."""


def mount(kind: str, at: Path, options: str, flags: int = 0) -> None:
    """mount(2).

    Raises:
        OSError: As it says.
    """
    if _libc.mount(kind.encode(), os.fsencode(at), kind.encode(), flags, options.encode()):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(at))


def unmount(at: Path) -> None:
    """What is open there stays open."""
    _libc.umount2(os.fsencode(at), MNT_DETACH)


def check_mounts(bench: Bench) -> None:
    """Tries it once.

    Raises:
        NotHereError: This user may not mount here.
    """
    at = bench.root / "tried"
    at.mkdir(exist_ok=True)
    try:
        mount("tmpfs", at, "size=64k")
    except OSError as error:
        raise NotHereError(f"nothing can be mounted: {error.strerror}") from None
    unmount(at)


def spread(count: int, first: float, last: float) -> Iterator[int]:
    """Numbers from `first` to `last`, each the same multiple of the one before."""
    for number in range(count):
        yield round(first * (last / first) ** (number / max(1, count - 1)))
