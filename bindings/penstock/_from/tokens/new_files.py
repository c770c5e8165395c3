"""New files and folders that get their name when they are whole."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from penstock._base.errors import Error, InvalidArgumentError, IoError
from penstock._places.paths import is_there
from penstock._places.scratch import remove_tree, unfinished

_BUFFER = 1 << 20


class NewFiles:
    """Files that are written under other names and renamed together, in the order in which they were made.

    Examples:
        >>> import os, tempfile
        >>> from penstock._from.tokens.new_files import NewFiles
        >>> path = os.path.join(tempfile.mkdtemp(), "a")
        >>> with NewFiles([path]) as new:
        ...     _ = new.open(path).write(b"x")
        >>> os.path.exists(path)
        True
    """

    def __init__(self, paths: Sequence[str]) -> None:
        """Of these names, which must be free.

        Raises:
            InvalidArgumentError: one is there.
        """
        self._paths = list(paths)
        for path in paths:
            refuse_existing(path)
        self._partial = {path: unfinished(path) for path in paths}
        self._open: dict[str, BinaryIO] = {}

    def open(self, path: str) -> BinaryIO:
        """A file that gets the name `path`."""
        if not Path(path).parent.exists():
            Path(path).parent.mkdir(parents=True)
        self._open[path] = Path(self._partial[path]).open("x+b", buffering=_BUFFER)  # noqa: SIM115 - __exit__ closes it
        return self._open[path]

    def __enter__(self) -> NewFiles:
        """Nothing is made yet."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: object) -> None:
        """Gives the files their names; after an exception removes them."""
        try:
            with saying(self._paths[0]):
                if kind is None:
                    self._publish()
                elif isinstance(error, OSError) and not isinstance(error, Error):
                    raise error
        finally:
            # Memory may be what it is out of: buffers are freed first, and names are at hand.
            while self._open:
                with suppress(OSError, MemoryError):
                    self._open.popitem()[1].close()
            for partial in self._partial.values():
                with suppress(OSError, MemoryError):
                    os.unlink(partial)  # noqa: PTH108 - a Path takes more memory

    def _publish(self) -> None:
        for file in self._open.values():
            file.flush()
            os.fsync(file.fileno())
            file.close()
        for path in self._open:
            refuse_existing(path)
            Path(self._partial[path]).replace(path)
        sync_folder(Path(self._paths[0]).parent)


@contextmanager
def new_folder(path: str) -> Iterator[Path]:
    """A folder that gets its name when the block ends, or is removed after an exception.

    Raises:
        InvalidArgumentError: something of this name is there.
        IoError: it cannot be written.
    """
    refuse_existing(path)
    partial = Path(unfinished(path))
    try:
        with saying(path):
            partial.mkdir(parents=True)
            yield partial
            sync_folder(partial)
            refuse_existing(path)
            partial.rename(path)
            sync_folder(Path(path).parent)
    finally:
        remove_tree(partial)


def refuse_existing(path: str) -> None:
    """Says that something of this name is there."""
    if is_there(path):
        raise InvalidArgumentError(f"{path} is there already: choose another --out")


@contextmanager
def saying(path: str) -> Iterator[None]:
    """Names what cannot be written."""
    try:
        yield
    except Error:
        raise
    except OSError as error:
        raise IoError(error.errno, f"{path}: cannot be written: {error.strerror or error}", path) from error


def sync_folder(folder: Path) -> None:
    """Makes names in it last."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
