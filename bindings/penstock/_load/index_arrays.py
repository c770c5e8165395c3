"""Indices that a user gives as an order: in memory, or mapped from a .npy; looked through once, by native code."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from penstock import _native
from penstock._base.errors import CorruptionError, InvalidArgumentError
from penstock._base.resources import default_threads
from penstock._base.words import one_line
from penstock._places.paths import PathLike, local_path, looking_at

_OWNER = "orders.Custom"


class Summary(NamedTuple):
    """The result of one pass over indices.

    Attributes:
        digest: of the indices as numbers, whatever their type.
        largest: of them.
        largest_at: the position of the first that is as large.
    """

    digest: str
    largest: int
    largest_at: int


class IndexArray:
    """Indices in memory, which are not copied where native code takes them as they are: keep them unchanged.

    Attributes:
        values: uint32 or uint64 [n].
        summary: of them.
    """

    values: npt.NDArray[Any]
    summary: Summary

    def __init__(self, given: Any) -> None:
        """Checks and digests them.

        Args:
            given: integers [n].

        Raises:
            InvalidArgumentError: no integers, none, a negative one.
        """
        try:
            array = np.asanyarray(given)
        except Exception as error:  # whatever an object that is no array raises
            raise InvalidArgumentError(f"{_OWNER}: a {type(given).__name__} is no array: {one_line(error)}") from error
        self.values, self.summary = checked(array, _OWNER)

    def order(self, n: int, fetch: int, lanes: int) -> _native.Order:
        """The native order over `n` observations.

        Raises:
            InvalidArgumentError: an index that they do not have.
        """
        check_range(self.summary, n, _OWNER)
        return _native.ListedOrder(self.values, self.summary.digest, fetch, lanes)

    def __len__(self) -> int:
        """How many there are."""
        return len(self.values)


class IndexFile(IndexArray):
    """Indices in a .npy of this machine, which is mapped: processes of a node share its pages.

    It pickles as its path, and is opened again there; it is read again only where size or time are others.
    """

    def __init__(self, path: PathLike) -> None:
        """Opens it, checks and digests what it holds.

        Raises:
            NotFoundError, IoError: no such file, or it cannot be read.
            InvalidArgumentError: no .npy of integers [n].
            CorruptionError: it is cut short, or is written to meanwhile.
        """
        self.path = os.path.abspath(local_path(path))  # noqa: PTH100 - a link stays one
        mapped = self._open()
        self.values, self.summary = checked(mapped, f"{_OWNER}: {self.path}")
        self._check_same()

    def _open(self) -> npt.NDArray[Any]:
        with looking_at(self.path):
            self._file: BinaryIO = open(self.path, "rb")  # noqa: PTH123, SIM115 - for as long as it is mapped
        status = os.fstat(self._file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise InvalidArgumentError(f"{_OWNER}: {self.path}: not a regular file")
        self._stamp = (status.st_size, status.st_mtime_ns)
        dtype, shape = _header(self._file, self.path)
        offset = self._file.tell()
        wanted = offset + dtype.itemsize * int(np.prod(shape, dtype=object))
        if status.st_size < wanted:
            raise CorruptionError(f"{self.path}: {status.st_size:,} bytes, its header says {wanted:,}")
        if 0 in shape or dtype.hasobject:
            return np.zeros(shape, dtype)  # which no mapping has
        return np.asarray(np.memmap(self._file, dtype, "r", offset, shape))

    def _check_same(self) -> None:
        status = os.fstat(self._file.fileno())
        if (status.st_size, status.st_mtime_ns) != self._stamp:
            raise CorruptionError(f"{self.path}: changed since it was opened: make orders.Custom anew")

    def order(self, n: int, fetch: int, lanes: int) -> _native.Order:
        """The native order over `n` observations, which raises CorruptionError once the file is written to.

        Raises:
            InvalidArgumentError: an index that they do not have.
            CorruptionError: the file changed.
        """
        check_range(self.summary, n, f"{_OWNER}: {self.path}")
        self._check_same()
        return _native.ListedOrder(self.values, self.summary.digest, fetch, lanes, self._file.fileno(), self.path)

    def __getstate__(self) -> dict[str, Any]:
        """Its path, and what was found there."""
        return {"path": self.path, "stamp": self._stamp, "summary": self.summary}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Opens it again.

        Raises:
            CorruptionError: it holds other indices.
        """
        self.path, self.summary = state["path"], state["summary"]
        mapped = self._open()
        if self._stamp == state["stamp"]:
            self.values = unsigned(mapped, _OWNER)
            return
        self.values, found = checked(mapped, f"{_OWNER}: {self.path}")
        if found != self.summary:
            raise CorruptionError(f"{self.path}: holds other indices than when it was pickled")


def unsigned(array: npt.NDArray[Any], owner: str) -> npt.NDArray[Any]:
    """Integers [n] as native code takes them: uint32 or uint64, aligned; of signed ones the same bytes.

    Raises:
        InvalidArgumentError: no integers [n], or none.
    """
    if array.ndim != 1 or array.dtype.kind not in "iu":
        is_mask = array.ndim == 1 and array.dtype.kind == "b"
        advice = ": np.flatnonzero(mask) gives those of a mask" if is_mask else ""
        shape = list(array.shape)
        raise InvalidArgumentError(
            f"{owner}: indices of shape {shape} and type {array.dtype}: integers [n] wanted{advice}"
        )
    if not len(array):
        raise InvalidArgumentError(f"{owner}: no indices: an epoch of nothing")
    if array.dtype.itemsize < 4:
        array = array.astype(np.int32)
    elif not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if not array.flags.aligned or array.strides[0] % array.itemsize:
        array = array.copy()
    return np.asarray(array).view(f"u{array.itemsize}")


def checked(array: npt.NDArray[Any], owner: str) -> tuple[npt.NDArray[Any], Summary]:
    """Indices as native code takes them, and what they come to.

    Raises:
        InvalidArgumentError: no integers [n], none, a negative one.
    """
    values = unsigned(array, owner)
    summary = summarized(values)
    if array.dtype.kind == "i" and (negative := int(array[summary.largest_at])) < 0:  # the largest of unsigned ones
        raise InvalidArgumentError(
            f"{owner}: index {negative:,} at position {summary.largest_at:,}: observations are numbered from 0"
        )
    return values, summary


def summarized(values: npt.NDArray[Any]) -> Summary:
    """Digest and largest of uint32 or uint64 [n], by as many threads as there are cores."""
    size = len(values)
    bounds = [(begin, min(begin + _native.INDEX_PART, size)) for begin in range(0, size, _native.INDEX_PART)]
    pool = ThreadPoolExecutor(min(len(bounds), default_threads()), "penstock-digest")
    try:
        found = list(pool.map(lambda part: _native.summarize_indices(values, *part), bounds))
    finally:
        pool.shutdown(cancel_futures=True)  # of Ctrl-C
    largest = max(each[1] for each in found)
    largest_at = next(each[2] for each in found if each[1] == largest)
    return Summary(_native.digest_of_parts(size, [each[0] for each in found]), largest, largest_at)


def check_range(summary: Summary, n: int, owner: str) -> None:
    """Refuses indices that a view does not have.

    Raises:
        InvalidArgumentError: there is one.
    """
    if summary.largest >= n:
        raise InvalidArgumentError(
            f"{owner}: index {summary.largest:,} at position {summary.largest_at:,}, and there are {n:,} observations"
        )


def _header(file: BinaryIO, path: str) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Type and shape of a .npy; the file is then where its values begin."""
    try:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(file)
    except Exception as error:  # what it raises for a file that is none is not said
        raise InvalidArgumentError(
            f"{_OWNER}: {path}: no .npy file, as np.save writes one: {one_line(error)}"
        ) from error
    return dtype, shape
