"""Compressed columns as rows: their values are scattered to files of runs of cells, then sorted one file at a time.

Memory is what is read at once and one file, whatever the matrix's size: a file with too many values is scattered again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from penstock._base.errors import InvalidArgumentError

_MOST_FILES = 256  # of one scattering
_COLUMNS = 1 << 16  # whose starts are read at once


class Bucket(NamedTuple):
    """A file of (row, gene, value) of the cells [begin, end), in the order of genes."""

    path: str
    begin: int
    end: int


class Buckets:
    """All cells of a matrix, in files. One thread at a time.

    Attributes:
        files: by cells.
        dtype: of what a file holds.
    """

    def __init__(self, files: list[Bucket], dtype: np.dtype[Any]) -> None:
        """Takes files that `transpose` wrote."""
        self.files = files
        self.dtype = dtype
        self._ends = np.array([each.end for each in files], np.int64)
        self._loaded = -1
        self._starts = np.zeros(1, np.int64)
        self._sorted = np.empty(0, dtype)

    def part(self, begin: int, end: int) -> Buckets:
        """The files of the cells [begin, end)."""
        return Buckets([each for each in self.files if each.begin < end and begin < each.end], self.dtype)

    def __reduce__(self) -> Any:
        """Another process reads the same files."""
        return Buckets, (self.files, self.dtype)

    def _pieces(self, begin: int, end: int) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[Any]]]:
        number = int(np.searchsorted(self._ends, begin, "right"))
        while begin < end:
            self._load(number)
            bucket = self.files[number]
            stop = min(end, bucket.end)
            starts = self._starts[begin - bucket.begin : stop - bucket.begin + 1]
            yield np.diff(starts), self._sorted[int(starts[0]) : int(starts[-1])]
            begin, number = stop, number + 1

    def _load(self, number: int) -> None:
        if number == self._loaded:
            return
        bucket = self.files[number]
        self._sorted = np.empty(0, self.dtype)  # before the next is read: memory holds one
        entries = np.fromfile(bucket.path, self.dtype)
        rows = entries["row"] - np.uint64(bucket.begin)
        counts = np.bincount(rows.astype(np.int64), minlength=bucket.end - bucket.begin)
        few = bucket.end - bucket.begin <= 1 << 16  # 16 bits are sorted by their digits, five times as fast
        self._sorted = entries[np.argsort(rows.astype(np.uint16) if few else rows, kind="stable")]
        self._starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        self._loaded = number

    def counts(self, begin: int, end: int) -> npt.NDArray[np.int64]:
        """Values of each of the cells [begin, end)."""
        found = []
        while begin < end:
            number = int(np.searchsorted(self._ends, begin, "right"))
            bucket = self.files[number]
            stop = min(end, bucket.end)
            if number != self._loaded:
                entries = (
                    np.memmap(bucket.path, self.dtype, "r") if Path(bucket.path).stat().st_size else self._sorted[:0]
                )
                rows = entries["row"].astype(np.int64) - bucket.begin
                counts = np.bincount(rows, minlength=bucket.end - bucket.begin)
            else:
                counts = np.diff(self._starts)
            found.append(counts[begin - bucket.begin : stop - bucket.begin])
            begin = stop
        return np.concatenate(found) if found else np.empty(0, np.int64)

    def read(self, begin: int, end: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any], npt.NDArray[Any]]:
        """Counts, genes and values of the cells [begin, end), by cell, then in the order of the file."""
        counts, genes, values = [], [], []
        for count, entries in self._pieces(begin, end):
            counts.append(count)
            genes.append(entries["gene"].copy())
            values.append(entries["value"].copy())
        if not counts:
            return np.empty(0, np.int64), np.empty(0, np.uint32), np.empty(0, self.dtype["value"])
        return np.concatenate(counts), np.concatenate(genes), np.concatenate(values)


def transpose(matrix: Any, folder: Path, at_once: int, tell: Callable[[int], None]) -> Buckets:
    """Scatters a Matrix of compressed columns into files of at most about `at_once` values each.

    `tell` is called with how many of the matrix's values are scattered, now and then.

    Raises:
        InvalidArgumentError: an indptr that falls or passes the end, a cell beyond the matrix.
    """
    dtype = np.dtype([("row", "<u8"), ("gene", "<u4"), ("value", matrix.dtype.newbyteorder("<"))])
    folder.mkdir(parents=True, exist_ok=True)
    files = _scatter(_entries(matrix, dtype, at_once, tell), 0, matrix.shape[0], matrix.stored, folder, "t", at_once)
    done: list[Bucket] = []
    waiting = files[::-1]
    while waiting:
        bucket = waiting.pop()
        count = Path(bucket.path).stat().st_size // dtype.itemsize
        if count <= 2 * at_once or bucket.end - bucket.begin == 1:
            done.append(bucket)
            continue
        parts = _scatter(_again(bucket, dtype, at_once), bucket.begin, bucket.end, count, folder, bucket.path, at_once)
        Path(bucket.path).unlink()
        waiting += parts[::-1]
    return Buckets(done, dtype)


def _entries(
    matrix: Any, dtype: np.dtype[Any], at_once: int, tell: Callable[[int], None]
) -> Iterator[npt.NDArray[Any]]:
    genes = matrix.shape[1]
    for first in range(0, genes, _COLUMNS):
        last = min(first + _COLUMNS, genes)
        starts = matrix.starts(first, last)
        for begin in range(int(starts[0]), int(starts[-1]), at_once):
            end = min(begin + at_once, int(starts[-1]))
            entries = np.empty(end - begin, dtype)
            rows = matrix.indices(begin, end)
            columns = np.repeat(np.arange(first, last), np.diff(np.clip(starts, begin, end)))
            _check_cells(matrix, rows, columns)
            entries["row"], entries["gene"], entries["value"] = rows, columns, matrix.values(begin, end)
            yield entries
            tell(end)


def _check_cells(matrix: Any, rows: npt.NDArray[Any], columns: npt.NDArray[Any]) -> None:
    bad = np.flatnonzero((rows < 0) | (rows >= matrix.shape[0]))
    if len(bad):
        at = int(bad[0])
        raise InvalidArgumentError(
            f"{matrix}: gene {int(columns[at]):,} has cell {int(rows[at]):,} of {matrix.shape[0]:,}"
        )


def _again(bucket: Bucket, dtype: np.dtype[Any], at_once: int) -> Iterator[npt.NDArray[Any]]:
    with Path(bucket.path).open("rb") as file:
        while len(entries := np.fromfile(file, dtype, at_once)):
            yield entries


def _scatter(
    entries: Iterator[npt.NDArray[Any]], begin: int, end: int, count: int, folder: Path, name: str, at_once: int
) -> list[Bucket]:
    wanted = min(_MOST_FILES, -(-count // at_once), end - begin)
    step = max(1, -(-(end - begin) // max(1, wanted)))
    buckets = [
        Bucket(str(folder / f"{Path(name).name}-{at}"), at, min(at + step, end)) for at in range(begin, end, step)
    ]
    for bucket in buckets:
        Path(bucket.path).touch()
    for block in entries:
        where = (block["row"] - np.uint64(begin)) // np.uint64(step)
        order = np.argsort(where.astype(np.uint16), kind="stable")
        ends = np.cumsum(np.bincount(where.astype(np.int64), minlength=len(buckets)))
        block = block[order]
        for bucket, first, last in zip(buckets, [0, *ends[:-1].tolist()], ends.tolist(), strict=True):
            if last > first:
                with Path(bucket.path).open("ab") as file:
                    block[first:last].tofile(file)
    return buckets
