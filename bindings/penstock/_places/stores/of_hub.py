"""Repositories of the Hugging Face Hub."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from penstock._places.hub import Hub, HubPath
from penstock._places.storage import Storage
from penstock._places.stores.adapter import Entry, Refused, listed


class OfHub:
    """Files of repositories. A branch is the commit that it was when this first looked."""

    ranges_a_call = 1
    has_whole = False
    listing_right = "to read it"

    def __init__(self, storage: Storage) -> None:
        """Asks for nothing yet. Raises InvalidArgumentError where huggingface_hub is not installed."""
        self._hub = Hub(storage)
        self._mutex = threading.Lock()
        self._commits: dict[str, str] = {}
        self._digests: dict[str, str] = {}
        self.credentials = self._hub.credentials

    def _pinned(self, key: str) -> HubPath:
        path = HubPath.parse(key)
        if is_commit(path.revision):
            return path
        with self._mutex:
            commit = self._commits.get(path.root)
        if commit is None:
            commit = self._hub.commit(path)
        with self._mutex:  # of two threads that asked at once, the first one's
            commit = self._commits.setdefault(path.root, commit)
        return replace(path, revision=commit)

    def size(self, key: str) -> int:
        """Bytes of the file."""
        with _refused():
            path = self._pinned(key)
            found = self._hub.described(path, [path.path]).get(path.path)
        if found is None:
            raise FileNotFoundError(key)
        if found.size < 0:
            raise IsADirectoryError(f"{key} is a folder")
        self._digests[key] = found.digest
        return found.size

    def read(self, key: str, offsets: list[int], sizes: list[int]) -> Sequence[Any]:
        """A buffer of each range."""
        with _refused():
            path = self._pinned(key)
            return [self._hub.read(path, offset, size) for offset, size in zip(offsets, sizes, strict=True)]

    def whole(self, key: str) -> Any:
        """Not asked for: `has_whole` is false."""
        raise NotImplementedError

    def etags(self) -> dict[str, str]:
        """Digests of the contents of files whose size was told."""
        return dict(self._digests)

    def secrets(self) -> Sequence[str]:
        """The token."""
        return (self._hub.token,) if self._hub.token else ()

    def refusal(self) -> str:
        """None: nothing is signed."""
        return ""

    def region(self, key: str) -> str | None:
        """None."""
        return None

    def folder(self, key: str) -> tuple[dict[str, int], list[str]]:
        """Bytes of each file in it, and the names of folders."""
        with _refused():
            found = list(self._hub.listing(self._pinned(key), recursive=False))
        entries = (Entry(each.path, each.size, each.size < 0, each.digest) for each in found)
        return listed(key, entries, self._digests.__setitem__)


@contextmanager
def _refused() -> Iterator[None]:
    try:
        yield
    except PermissionError as error:
        raise Refused(str(error)) from None


def is_commit(revision: str) -> bool:
    """True if it is the whole name of a commit."""
    return len(revision) == 40 and not set(revision) - set("0123456789abcdef")
