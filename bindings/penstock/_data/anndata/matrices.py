"""Matrices of cells by genes, read by ranges of cells: compressed rows, compressed columns, dense."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from penstock._base.errors import InvalidArgumentError
from penstock._base.words import excerpt
from penstock._data.anndata.arrays import Array, array_of, is_array, reading
from penstock._data.anndata.stores import Store
from penstock._data.anndata.transpose import Buckets


class Part(NamedTuple):
    """Values of some cells: how many each has [cells], and end to end their genes and values."""

    counts: npt.NDArray[np.int64]
    genes: npt.NDArray[Any]
    values: npt.NDArray[Any]


class Matrix:
    """One matrix of an opened store. One thread at a time.

    Attributes:
        name: "X", "raw/X" or "layers/NAME".
        kind: "csr", "csc" or "dense".
        shape: cells, genes.
        dtype: of its values.
        stored: values that are stored: all of a dense one.
    """

    def __init__(self, store: Store, name: str, at_once: int) -> None:
        """Looks at what it is; `at_once` values are read at once.

        Raises:
            InvalidArgumentError: there is none of this name, it is no matrix of numbers, or a part of it is missing.
        """
        self.store = store
        self.name = name
        self._at_once = at_once
        with reading(self):
            is_there = name in store.root
        if not is_there:
            layers = ", ".join(f"layers/{each}" for each in store.names_in("layers"))
            raise InvalidArgumentError(f"{self}: there is no such matrix{f'; there are {layers}' if layers else ''}")
        with reading(self):
            node = store.root[name]
            encoding = str(node.attrs.get("encoding-type", ""))
            shape: Any = node.shape if is_array(node) else node.attrs.get("shape", ())
            self.shape = tuple(int(each) for each in shape)
        if is_array(node):
            self.kind, self._values = "dense", Array(store.path, name, node)
            self.stored = int(np.prod(self.shape, dtype=object))
        elif encoding in ("csr_matrix", "csc_matrix"):
            self.kind = encoding[:3]
            self._values, self._indices, self._indptr = (
                array_of(store.path, node, part, name) for part in ("data", "indices", "indptr")
            )
            self.stored = len(self._indices)
        else:
            raise InvalidArgumentError(f"{self}: neither sparse nor dense, but {encoding or 'without an encoding'}")
        self.dtype = self._values.dtype
        if len(self.shape) != 2 or self.dtype.kind not in "biuf" or self.dtype.itemsize > 8:
            raise InvalidArgumentError(f"{self}: {list(self.shape)} of {self.dtype}: numbers of two axes are wanted")
        if self.kind != "dense":
            self._check_parts()
        self._first, self._starts = 0, np.zeros(1, np.int64)
        self.buckets: Buckets | None = None  # of compressed columns

    def __str__(self) -> str:
        """File and name."""
        return f"{self.store.path}: {self.name}"

    def _check_parts(self) -> None:
        for part in (self._values, self._indices, self._indptr):
            if len(part.shape) != 1 or (part is not self._values and part.dtype.kind not in "iu"):
                raise InvalidArgumentError(
                    f"{part}: {list(part.shape)} of {part.dtype}: integers of one axis are wanted"
                )
        rows = self.shape[0] if self.kind == "csr" else self.shape[1]
        if len(self._indptr) != rows + 1:
            raise InvalidArgumentError(f"{self}/indptr has {len(self._indptr):,} values, expected {rows + 1:,}")
        if len(self._values) != self.stored:
            raise InvalidArgumentError(f"{self}: {len(self._values):,} data for {self.stored:,} indices")

    def cell(self, row: int) -> str:
        """The name of a cell, for messages."""
        names = self.store.obs.names(row, row + 1)
        return f"cell {row:,} ({excerpt(names[0])})" if names else f"cell {row:,}"

    def starts(self, begin: int, end: int) -> npt.NDArray[np.int64]:
        """Where rows (of compressed columns: columns) [begin, end) begin among the stored values, and the end.

        Raises:
            InvalidArgumentError: they fall, or pass the end.
        """
        raw = self._indptr.read(begin, end + 1)
        starts: npt.NDArray[np.int64] = raw.astype(np.int64)
        falls = np.flatnonzero(np.diff(starts) < 0)
        past = np.flatnonzero((starts > self.stored) | (starts < 0))
        if begin == 0 and starts[0] != 0:
            raise InvalidArgumentError(f"{self}/indptr begins with {starts[0]:,}, expected 0")
        if len(past):
            at = begin + int(past[0])
            raise InvalidArgumentError(
                f"{self}/indptr passes the end before {self._line(at)}: {raw[past[0]]:,} of {self.stored:,}"
            )
        if len(falls):
            at = int(falls[0])
            raise InvalidArgumentError(
                f"{self}/indptr falls at {self._line(begin + at)}: from {starts[at]:,} to {starts[at + 1]:,}"
            )
        return starts

    def _line(self, number: int) -> str:
        if self.kind == "csc":
            return f"gene {number:,}"
        return self.cell(number) if number < self.shape[0] else f"cell {number:,}"

    def weights(self, begin: int, end: int) -> npt.NDArray[np.int64]:
        """How many values reading each of the cells [begin, end) takes; what `read` of them needs is kept."""
        if self.kind == "dense":
            return np.full(end - begin, self.shape[1], np.int64)
        if self.kind == "csc":
            assert self.buckets is not None
            return self.buckets.counts(begin, end)
        self._first, self._starts = begin, self.starts(begin, end)
        return np.diff(self._starts)

    def read(self, begin: int, end: int) -> Part:
        """Cells [begin, end), which `weights` was asked for; of dense ones what is not zero.

        Raises:
            InvalidArgumentError: a gene beyond the matrix.
        """
        if self.kind == "dense":
            block = self.dense(begin, end)
            rows, genes = np.nonzero(block)
            return Part(np.bincount(rows, minlength=end - begin), genes, block[rows, genes])
        if self.kind == "csc":
            assert self.buckets is not None
            return Part(*self.buckets.read(begin, end))
        starts = self._starts[begin - self._first : end - self._first + 1]
        low, high = int(starts[0]), int(starts[-1])
        genes = self._indices.read(low, high)
        counts = np.diff(starts)
        self.check_range(genes, self.shape[1], lambda at: begin + int(np.searchsorted(starts - low, at, "right")) - 1)
        return Part(counts, genes, self._values.read(low, high))

    def check_range(self, genes: npt.NDArray[Any], limit: int, row_of: Any) -> None:
        """Refuses a number of a gene that there is not; `row_of(place)` is its cell."""
        if not len(genes) or (int(genes.min()) >= 0 and int(genes.max()) < limit):
            return
        at = int(np.flatnonzero((genes < 0) | (genes >= limit))[0])
        raise InvalidArgumentError(f"{self}: {self.cell(row_of(at))} has gene {int(genes[at]):,} of {limit:,}")

    def dense(self, begin: int, end: int) -> npt.NDArray[Any]:
        """Cells [begin, end) of a dense matrix."""
        return self._values.read(begin, end)

    def rows_at_once(self) -> int:
        """Cells of a dense matrix that are read at once: whole chunks of its file where that fits."""
        rows = max(1, self._at_once // max(1, self.shape[1]))
        chunk = self._values.chunk
        return rows - rows % chunk if 0 < chunk <= rows else rows

    def values(self, begin: int, end: int) -> npt.NDArray[Any]:
        """Stored values [begin, end) in the order of the file; of a dense matrix those of cells [begin, end)."""
        return self._values.read(begin, end)

    def indices(self, begin: int, end: int) -> npt.NDArray[Any]:
        """Stored indices [begin, end)."""
        return self._indices.read(begin, end)

    def ranges(self) -> list[tuple[int, int]]:
        """Ranges for `values` that together are all of them."""
        count = self.shape[0] if self.kind == "dense" else self.stored
        step = self.rows_at_once() if self.kind == "dense" else self._at_once
        return [(at, min(at + step, count)) for at in range(0, count, step)]
