"""What the threads of a store fetch from: one interface for obstore, fsspec and a user's own object."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

RANGES_A_CALL = 10  # as many as obstore has under way in one call


class Changed(Exception):
    """A file is another one than when it was first read; its words say how that is seen."""


class Refused(PermissionError):
    """Access that is refused; its words hold no secret and need none before them."""


class Adapter(Protocol):
    """What threads fetch from; blocking calls, of several threads at once. Keys have no slash at either end."""

    ranges_a_call: int
    has_whole: bool
    credentials: str  # with what it asks, for messages
    listing_right: str  # what these need to list, for messages

    def size(self, key: str) -> int: ...
    def read(self, key: str, offsets: list[int], sizes: list[int]) -> Sequence[Any]: ...
    def whole(self, key: str) -> Any: ...
    def secrets(self) -> Sequence[str]:
        """What no message may hold."""
        ...

    def etags(self) -> dict[str, str]:
        """Of keys that were read: what the store said that tells their content from another."""
        ...

    def refusal(self) -> str:
        """Why it got no credentials when it asked last; empty: it did."""
        ...

    def region(self, key: str) -> str | None:
        """Where the bucket of a key lies, where anything says it."""
        ...

    def folder(self, key: str) -> tuple[dict[str, int], list[str]]:
        """Bytes of each file in it, by its name; and the names of folders."""
        ...


class Entry(NamedTuple):
    """A file or folder of a listing.

    Attributes:
        path: as the store names it.
        size: bytes; -1: they are not told.
        is_folder: whether it is one.
        told: what tells its content from another, as the store says it; empty: nothing.
    """

    path: str
    size: int
    is_folder: bool
    told: str


def listed(key: str, entries: Iterable[Entry], note: Callable[[str, str], None]) -> tuple[dict[str, int], list[str]]:
    """What `Adapter.folder` answers of the folder `key`; `note` is told of each file's key what tells its content."""
    files: dict[str, int] = {}
    folders = []
    for each in entries:
        name = posixpath.basename(each.path.rstrip("/"))
        if each.is_folder:
            folders.append(name)
        else:
            files[name] = each.size
            if each.told:
                note(f"{key}/{name}" if key and not key.endswith("/") else key + name, each.told)
    return files, folders


def buffers(given: Any) -> list[Any]:
    """What read() returned. Raises TypeError where that is no list."""
    if isinstance(given, bytes | bytearray | memoryview | str):
        raise TypeError(f"read() returned {type(given).__name__}, not a list of buffers")
    return list(given)
