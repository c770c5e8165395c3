"""Sizes and times of a run's input files, while it is unfinished: what tells that one of them is another now.

docs/decisions.md, "Times tell a changed input, samples tell what a shard was made of".
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from penstock._base.errors import InvalidArgumentError, IoError, NotFoundError
from penstock._base.words import counted
from penstock._make.folder import Folder

_FILE = ".import-inputs"


class Stamps:
    """Size and time of every input file, kept beside the dataset's shards until it is published."""

    def __init__(self, paths: Sequence[str]) -> None:
        """Looks at these files and folders."""
        self._paths = paths
        self._now = [_stamp(path) for path in paths]

    def check(self, folder: Folder, shards: int) -> bool:
        """True if the `shards` finished shards in it were made of these inputs; False where no note tells.

        Raises:
            InvalidArgumentError: one of them is another; the message names it.
        """
        try:
            then = json.loads(folder.read_note(_FILE) or b"null")
        except (OSError, ValueError):
            return False
        if then is None:
            return False
        for number, path in enumerate(self._paths):
            if not isinstance(then, list) or number >= len(then) or then[number] != self._now[number]:
                raise InvalidArgumentError(
                    f"{path}: is another than when {counted(shards, 'finished shard')} in {folder.path} "
                    f"{'was' if shards == 1 else 'were'} made, or has changed since: go on with that input, or start "
                    "anew with --overwrite and without --resume"
                )
        if len(then) > len(self._paths):
            raise InvalidArgumentError(
                f"{folder.path}: {counted(shards, 'finished shard')} of {counted(len(then), 'input')}, "
                f"{len(self._paths):,} of them given now: give all, or start anew with --overwrite and without "
                "--resume"
            )
        return True

    def write(self, folder: Folder) -> None:
        """Notes them, before a first shard is made."""
        folder.write_note(_FILE, json.dumps(self._now).encode())

    def remove(self, folder: Folder) -> None:
        """Removes the note, once the dataset is published or nothing of it is finished."""
        folder.remove_notes([_FILE])

    def check_unchanged(self) -> None:
        """Refuses inputs that changed since this was made.

        Raises:
            InvalidArgumentError: one did.
        """
        for path, then in zip(self._paths, self._now, strict=True):
            if _stamp(path) != then:
                raise InvalidArgumentError(f"{path}: changed while it was imported: start anew with --overwrite")


def _stamp(path: str) -> list[Any]:
    """Bytes, and a digest of the size and time of each file."""
    found, size = hashlib.sha256(), 0
    try:
        for name, each in sorted(_files(path)):
            size += each.st_size
            found.update(f"{name}\0{each.st_size}\0{each.st_mtime_ns}\n".encode("utf-8", "surrogateescape"))
    except (FileNotFoundError, NotADirectoryError):
        raise NotFoundError(errno.ENOENT, f"{path}: no such file or folder", path) from None
    except OSError as error:
        raise IoError(error.errno, f"{path}: {error.strerror or error}", path) from error
    return [size, found.hexdigest()]


def _files(path: str) -> Iterator[tuple[str, os.stat_result]]:
    root = Path(path)
    if not root.is_dir():
        yield "", root.stat()
        return
    waiting = [root]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir():
                    waiting.append(Path(entry.path))
                else:
                    yield os.path.relpath(entry.path, root), entry.stat()
