"""Objects of a user's own: size(path), list(prefix) and read(path, offsets, sizes)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock._places.stores.adapter import RANGES_A_CALL, buffers

METHODS = ("size", "list", "read")


class Own:
    """An object of the user's: list(prefix) gives the keys that begin with it, or pairs of a key and its bytes."""

    ranges_a_call = RANGES_A_CALL
    has_whole = False
    credentials = "with those of store="
    listing_right = "to list"

    def __init__(self, store: Any) -> None:
        self._store = store

    def size(self, key: str) -> int:
        """Bytes of the file."""
        return int(self._store.size(key))

    def read(self, key: str, offsets: list[int], sizes: list[int]) -> Sequence[Any]:
        """A buffer of each range."""
        return buffers(self._store.read(key, offsets, sizes))

    def whole(self, key: str) -> Any:
        """Not asked for: `has_whole` is false."""
        raise NotImplementedError

    def secrets(self) -> Sequence[str]:
        """None that are known."""
        return ()

    def etags(self) -> dict[str, str]:
        """None: it tells none."""
        return {}

    def refusal(self) -> str:
        """Not known."""
        return ""

    def region(self, key: str) -> str | None:
        """Not known."""
        return None

    def folder(self, key: str) -> tuple[dict[str, int], list[str]]:
        """Bytes of each file in it, -1 where they are not told, and the names of folders."""
        prefix = key + "/" if key else ""
        files: dict[str, int] = {}
        folders: dict[str, None] = {}
        for each in self._store.list(prefix):
            name, size = (each, -1) if isinstance(each, str) else each
            if not name.startswith(prefix):
                continue
            first, separator, _ = name.removeprefix(prefix).partition("/")
            if separator:
                folders[first] = None
            elif first:
                files[first] = int(size)
        return files, list(folders)
