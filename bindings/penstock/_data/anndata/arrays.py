"""Arrays and groups of a store, whose errors name file and member: zarr raises anything else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock._base.errors import CorruptionError, Error, InvalidArgumentError
from penstock._base.words import excerpt


@contextmanager
def reading(what: object) -> Iterator[None]:
    """Says of `what`, a file with its member, that it cannot be read.

    Raises:
        CorruptionError: instead of whatever zarr and the codecs below it raise, and of what follows from odd shapes.
    """
    try:
        yield
    except (Error, MemoryError, ModuleNotFoundError):
        raise
    except Exception as error:
        said = excerpt(error) or type(error).__name__
        raise CorruptionError(f"{what} cannot be read: {said}") from error


class Array:
    """One array of a store, read by ranges of its first axis. One thread at a time.

    Attributes:
        shape: all axes.
        dtype: of its values, as stored.
        chunk: rows of a chunk of the file; 0 where it has none.
        node: the array of zarr, or of HDF5 (hdf5.ArrayNode).
    """

    def __init__(self, path: str, member: str, node: Any) -> None:
        """Takes the node that `array_of` found."""
        self._what = f"{path}: {member}"
        self.node = node
        with reading(self._what):
            self.shape = tuple(int(each) for each in node.shape)
            self.dtype: np.dtype[Any] = np.dtype(node.dtype)
            chunks = getattr(node, "chunks", None)
            self.chunk = int(chunks[0]) if chunks else 0

    def __str__(self) -> str:
        """File and member."""
        return self._what

    def __len__(self) -> int:
        """Values of the first axis; 0 where there is none."""
        return self.shape[0] if self.shape else 0

    @property
    def is_text(self) -> bool:
        """True if its values are strings."""
        return self.dtype.kind in "OSUT"

    def read(self, begin: int, end: int) -> npt.NDArray[Any]:
        """Values [begin, end).

        Raises:
            CorruptionError: a chunk cannot be read.
        """
        with reading(f"{self} [{begin:,}, {end:,})"):
            return np.asarray(self.node[begin:end])

    def texts(self, begin: int, end: int) -> list[str]:
        """Strings [begin, end), or the text of numbers.

        Raises:
            CorruptionError: they cannot be read, or are no UTF-8.
        """
        with reading(f"{self} [{begin:,}, {end:,})"):
            if hasattr(self.node, "texts"):  # of HDF5
                return [str(each) for each in self.node.texts(begin, end)]
            values = np.asarray(self.node[begin:end]).tolist()
            return [each.decode() if isinstance(each, bytes) else str(each) for each in values]


def is_array(node: Any) -> bool:
    """True if a node is an array, and not a group."""
    return hasattr(node, "dtype")


def array_of(path: str, group: Any, name: str, where: str) -> Array:
    """The array `name` of a group, which `where` says in messages.

    Raises:
        InvalidArgumentError: it is not there, or is a group.
    """
    member = f"{where}/{excerpt(name)}"
    with reading(f"{path}: {member}"):
        node = group.get(name)
    if node is None:
        raise InvalidArgumentError(f"{path}: there is no {member}")
    if not is_array(node):
        raise InvalidArgumentError(f"{path}: {member} is a group, an array is wanted")
    return Array(path, member, node)
