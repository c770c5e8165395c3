"""Filesystems of fsspec."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock._base.errors import InvalidArgumentError
from penstock._places.stores.adapter import RANGES_A_CALL, Entry, listed

_TELLS_CONTENT = ("ETag", "etag", "e_tag", "md5", "blob_id", "sha", "LastModified", "last_modified", "mtime", "created")


def is_filesystem(store: Any) -> bool:
    """Whether this is one of fsspec's."""
    try:
        from fsspec import AbstractFileSystem
    except ModuleNotFoundError:
        return False
    return isinstance(store, AbstractFileSystem)


class OfFsspec:
    """A filesystem of fsspec's: those that are asynchronous inside take several ranges a call."""

    has_whole = False
    credentials = "with those of its fsspec filesystem"
    listing_right = "to list"

    def __init__(self, filesystem: Any) -> None:
        self._fs = filesystem
        self._is_async = bool(getattr(filesystem, "async_impl", False))
        self._is_memory = type(filesystem).__module__ == "fsspec.implementations.memory"
        self.ranges_a_call = RANGES_A_CALL if self._is_async else 1
        self._etags: dict[str, str] = {}

    def size(self, key: str) -> int:
        """Bytes of the file. Raises InvalidArgumentError where the filesystem does not say it."""
        info = self._fs.info(self._fs._strip_protocol(key))
        if info.get("type") == "directory":
            raise IsADirectoryError(f"{key} is a folder")
        if info.get("size") is None:
            raise InvalidArgumentError(f"{key}: its filesystem does not say how many bytes it has")
        if told := _told(info):
            self._etags[key] = told
        return int(info["size"])

    def read(self, key: str, offsets: list[int], sizes: list[int]) -> Sequence[Any]:
        """A buffer of each range."""
        key = self._fs._strip_protocol(key)
        ends = [offset + size for offset, size in zip(offsets, sizes, strict=True)]
        if self._is_async and len(offsets) > 1:
            found = self._fs.cat_ranges([key] * len(offsets), offsets, ends, on_error="return")
            for each in found:
                if isinstance(each, BaseException):
                    raise each
            return list(found)
        return [self._range(key, start, end) for start, end in zip(offsets, ends, strict=True)]

    def _range(self, key: str, start: int, end: int) -> Any:
        if self._is_memory:  # its files have one position for all threads
            file = self._fs.store.get(key)
            if file is None:
                raise FileNotFoundError(key)
            return bytes(file.getbuffer()[start:end])
        if self._is_async:
            return self._fs.cat_file(key, start=start, end=end)
        with self._fs.open(key, "rb", cache_type="none") as file:  # a cache of a file reads ahead by megabytes
            file.seek(start)
            return file.read(end - start)

    def whole(self, key: str) -> Any:
        """Not asked for: `has_whole` is false."""
        raise NotImplementedError

    def etags(self) -> dict[str, str]:
        """Of files whose size was told: an ETag, a digest or a time, by which a later opening sees a change."""
        return dict(self._etags)

    def secrets(self) -> Sequence[str]:
        """None that are known."""
        return ()

    def refusal(self) -> str:
        """Not known."""
        return ""

    def region(self, key: str) -> str | None:
        """Not known."""
        return None

    def folder(self, key: str) -> tuple[dict[str, int], list[str]]:
        """Bytes of each file in it, -1 where they are not told, and the names of folders."""
        found = self._fs.ls(self._fs._strip_protocol(key), detail=True)
        return listed(key, map(_entry, found), self._etags.__setitem__)


def _entry(info: dict[str, Any]) -> Entry:
    size = -1 if info.get("size") is None else int(info["size"])
    return Entry(info["name"], size, info["type"] == "directory", _told(info))


def _told(info: dict[str, Any]) -> str:
    return next((f"{name} {info[name]}" for name in _TELLS_CONTENT if info.get(name)), "")
