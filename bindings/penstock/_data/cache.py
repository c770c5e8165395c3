"""The local cache of datasets that lie elsewhere, and what is in such a folder."""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock import _native
from penstock._base.arguments import index
from penstock._base.errors import InvalidArgumentError, NotFoundError
from penstock._data.dataset import Dataset
from penstock._places.paths import PathLike, local_path

_PARTS = 1 << 16  # shares are noted in parts of this many: core/io/cache/block_share.h
_FOLDER = re.compile(r"[0-9a-f]{32}")
_FILE = re.compile(r"[0-9a-f]{32}\.(data|crc)|about\.json")


@dataclass(frozen=True)
class Cache:
    """Where and how much is kept of what is read; given to another process, the same.

    Args:
        folder: an absolute path.
        most_bytes: None for half of what is free or kept already.
    """

    folder: str
    most_bytes: int | None

    @classmethod
    def parse(cls, cache: PathLike | None, cache_bytes: int | None, is_remote: bool) -> Cache | None:
        """What `open` was given of it. Raises InvalidArgumentError for what cannot be."""
        if cache is None:
            if cache_bytes is not None:
                raise InvalidArgumentError(f"cache_bytes={cache_bytes!r}: give the folder to keep them in: cache=DIR")
            return None
        if isinstance(cache, str) and "://" in cache and not cache.startswith("file://"):
            raise InvalidArgumentError(f"cache={_native.shown_address(cache)!r}: a folder of this machine is wanted")
        folder = local_path(cache)
        if not is_remote:
            raise InvalidArgumentError(
                f"cache={folder!r}: the dataset lies on this machine, where nothing is cached: leave cache= out"
            )
        most = None if cache_bytes is None else index("cache_bytes", cache_bytes, 1)
        return cls(str(Path(folder).absolute()), most)

    def opened(
        self,
        kind: str,
        paths: Sequence[str],
        descr: str,
        checks: str,
        stores: Sequence[_native.Store | None],
        reopen: Any,
        column: str = "",
        place: str = "",
    ) -> Dataset:
        """A dataset of which what is read stays. `place` is the server of a bucket, where it is not the vendor's.

        Raises:
            InvalidArgumentError: addresses of servers and of buckets at once.
            OSError: the folder cannot be written.
        """
        store = next(each for each in stores if each is not None)
        if any(each not in (None, store) for each in stores):
            raise InvalidArgumentError(
                "cache=: addresses of servers and of buckets at once are not kept: open them apart"
            )
        cached = _native.CachedStore(store, self.folder)
        through = [None if each is None else cached for each in stores]
        dataset = Dataset(_native.open_as(kind, paths, descr, checks, through, column), reopen)
        addresses = [path for path, each in zip(paths, stores, strict=True) if each is not None]
        if kind in _BESIDE:
            pattern, owner = _BESIDE[kind]
            addresses = [re.sub(pattern, owner, each) for each in addresses]
        etags: dict[str, str] = getattr(store, "etags", dict)()  # of those that Python reads
        cached.keep(dataset._native, addresses, self.most_bytes, place, etags)
        dataset._cache = cached
        return dataset


# Of formats of several files: how what was opened becomes what the paths of all that is read begin with.
_BESIDE = {
    "megatron": (r"\.(bin|idx)$", ""),
    "datatrove": (r"\.ds\.(index|loss|metadata)$", ".ds"),
    "olmo": (r"\.csv\.gz$", ".npy"),
    **dict.fromkeys(("mds", "litdata", "index.json"), (r"/(index\.json)?$", "")),
}


@dataclass(frozen=True)
class Kept:
    """What a cache holds of one dataset.

    Args:
        folder: of its pages.
        address: where the dataset lies; None where that was not noted.
        dataset_bytes: of the dataset; None as well.
        share: of it that may be kept, 0 to 1; None as well.
        kept_bytes: of disk.
    """

    folder: Path
    address: str | None
    dataset_bytes: int | None
    share: float | None
    kept_bytes: int


def look(cache: PathLike) -> list[Kept]:
    """What a cache's folder holds, sorted by address. Raises NotFoundError, OSError."""
    found = [_look_at(folder) for folder in _folders(cache)]
    return sorted(found, key=lambda each: (each.address or "", str(each.folder)))


def clear(cache: PathLike) -> int:
    """Removes what a cache made in its folder, and nothing else.

    Returns:
        Bytes of disk that were given back.

    Raises:
        NotFoundError: there is no such folder.
        OSError: a file cannot be removed.
    """
    removed = 0
    for folder in _folders(cache):
        for file in sorted(folder.iterdir()):
            if _FILE.fullmatch(file.name) and file.is_file() and not file.is_symlink():
                removed += _disk_bytes(file)
                file.unlink(missing_ok=True)
        if not any(folder.iterdir()):
            folder.rmdir()
    return removed


def _folders(cache: PathLike) -> Iterator[Path]:
    folder = Path(local_path(cache))
    if not folder.is_dir():
        raise NotFoundError(errno.ENOENT, f"{folder}: no folder of a cache", str(folder))
    for each in sorted(folder.iterdir()):
        if _FOLDER.fullmatch(each.name) and each.is_dir() and not each.is_symlink():
            yield each


def _look_at(folder: Path) -> Kept:
    kept = sum(_disk_bytes(file) for file in folder.iterdir())
    try:
        about: dict[str, Any] = json.loads((folder / "about.json").read_text())
        return Kept(folder, str(about["address"]), int(about["bytes"]), int(about["parts"]) / _PARTS, kept)
    except (OSError, ValueError, KeyError, TypeError):  # cut short by a crash: it is a note, and no more
        return Kept(folder, None, None, None, kept)


def _disk_bytes(file: Path) -> int:
    try:
        return os.lstat(file).st_blocks * 512
    except FileNotFoundError:
        return 0
