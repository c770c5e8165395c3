"""New files and folders that get their name when they are whole."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from penstock._base.errors import Error, InvalidArgumentError, IoError
from penstock._places.paths import is_there
from penstock._places.unfinished import hold, naming_left, remove_dead, removed, removing, take_back, unfinished

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
        remove_dead(path)
        while True:
            partial = self._partial[path]
            file = self._open[path] = Path(partial).open("x+b", buffering=_BUFFER)  # noqa: SIM115 - __exit__ closes it
            if hold(file.fileno(), partial):
                return file
            file.close()
            removed(partial)
            self._partial[path] = unfinished(path)

    def __enter__(self) -> NewFiles:
        """Nothing is made yet."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: object) -> None:
        """Gives the files their names; after an exception removes them."""
        try:
            with saying(self._paths[0]):
                if kind is None:
                    self._publish()
                elif isinstance(error, OSError):
                    raise error
        except OSError as refused:
            self._close()
            raise naming_left(refused, list(self._partial.values())) from refused.__cause__
        finally:
            self._close()
            for partial in self._partial.values():
                removed(partial)

    def _close(self) -> None:
        # Memory may be what it is out of: buffers are freed before names are removed.
        while self._open:
            with suppress(OSError, MemoryError):
                self._open.popitem()[1].close()

    def _publish(self) -> None:
        for file in self._open.values():
            file.flush()
            os.fsync(file.fileno())
            file.close()
        named: list[str] = []
        try:
            for path in self._open:
                refuse_existing(path)
                Path(self._partial[path]).replace(path)
                named.append(path)
            sync_folder(Path(self._paths[0]).parent)
        except BaseException as error:
            take_back(named, error)
            raise


@contextmanager
def new_folder(path: str) -> Iterator[Path]:
    """A folder that gets its name when the block ends, or is removed after an exception.

    Raises:
        InvalidArgumentError: something of this name is there.
        IoError: it cannot be written.
    """
    refuse_existing(path)
    remove_dead(path)
    names: list[str] = []
    with removing(names), saying(path):
        with held_folder(path, names) as partial:
            yield partial
            sync_folder(partial)
            refuse_existing(path)
            partial.rename(path)
        try:
            sync_folder(Path(path).parent)
        except OSError as error:
            take_back([path], error)
            raise


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


@contextmanager
def held_folder(path: str, names: list[str]) -> Iterator[Path]:
    """Makes an unfinished folder of `path`, and locks it during the block; adds each name that it tries to `names`."""
    while True:
        names.append(unfinished(path))
        partial = Path(names[-1])
        partial.mkdir(parents=True)
        with suppress(FileNotFoundError):  # another run took it for a dead one
            descriptor = os.open(partial, os.O_RDONLY | os.O_CLOEXEC)
            if hold(descriptor, names[-1]):
                break
            os.close(descriptor)
    try:
        yield partial
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Makes names in it last."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
