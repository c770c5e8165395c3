"""Records of a dataset by their place in the stream, whatever its windows and documents are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock._data.dataset import Dataset

PART_BYTES = 1 << 23  # of what is read at once
BLOCK = 1 << 12  # records of a window, in which records are read


class Records:
    """Reads records few at a time. One thread."""

    def __init__(self, dataset: Dataset, names: list[str]) -> None:
        """Of these fields."""
        self._dataset = dataset
        self._names = names
        assert dataset.dtype is not None
        self.bytes = dataset.dtype.itemsize
        self.most = max(1, PART_BYTES // self.bytes)

    def read(self, begin: int, end: int) -> dict[str, npt.NDArray[Any]]:
        """Records [begin, end), read in whole windows."""
        if begin >= end:
            dtype = self._dataset.dtype
            return {name: np.empty(0, dtype and dtype[name]) for name in self._names}
        whole = self._dataset.records // BLOCK * BLOCK  # behind it is less than a window
        found: list[Any] = []
        if begin < whole:
            found.append(self._blocks(begin // BLOCK, -(-min(end, whole) // BLOCK)))
        if end > whole:
            found.append(self._rest(whole))
        first = begin // BLOCK * BLOCK
        return {
            name: (found[0][name] if len(found) == 1 else np.concatenate([each[name] for each in found]))[
                begin - first : end - first
            ]
            for name in self._names
        }

    def _blocks(self, first: int, last: int) -> dict[str, npt.NDArray[Any]]:
        batch = self._dataset.windows(BLOCK, metadata=False).read(np.arange(first, last, dtype=np.uint64))
        return {name: batch[name].reshape(-1) for name in self._names}

    def _rest(self, whole: int) -> dict[str, npt.NDArray[Any]]:
        """Records from `whole` on, by one read: what is behind the last window, or a window of them all."""
        records = self._dataset.records
        view = self._dataset.windows(BLOCK if whole else records, records - whole if whole else 0, metadata=False)
        batch = view.read(np.array([len(view) - 1], np.uint64))
        return {name: batch[name].reshape(-1)[BLOCK if whole else 0 :] for name in self._names}

    def parts(self, begin: int, end: int) -> Iterator[dict[str, npt.NDArray[Any]]]:
        """Records [begin, end), a few MiB at a time."""
        step = max(self.most // BLOCK, 1) * BLOCK
        for first in range(begin, end, step):
            yield self.read(first, min(first + step, end))


def runs(lengths: npt.NDArray[np.int64], most: int) -> Iterator[tuple[int, int]]:
    """Documents that have at most so many records together, or one."""
    ends, low = np.cumsum(lengths), 0
    while low < len(lengths):
        done = int(ends[low - 1]) if low else 0
        high = max(int(np.searchsorted(ends, done + most, "right")), low + 1)
        yield low, high
        low = high
