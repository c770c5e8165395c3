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
        """Records [begin, end), read in whole windows but at the end of the stream."""
        first, last = begin // BLOCK, -(-end // BLOCK)
        whole = min(last, self._dataset.records // BLOCK)
        found: list[Any] = []
        if first < whole:
            view = self._dataset.windows(BLOCK, metadata=False)
            found.append(view.read(np.arange(first, whole, dtype=np.uint64)))
        tail = max(first, whole) * BLOCK
        if end > tail:
            found.append(self._dataset.windows(1, metadata=False).read(np.arange(tail, end, dtype=np.uint64)))
        if not found:
            dtype = self._dataset.dtype
            return {name: np.empty(0, dtype and dtype[name]) for name in self._names}
        low, high = begin - first * BLOCK, end - first * BLOCK
        return {
            name: (
                found[0][name].reshape(-1)
                if len(found) == 1
                else np.concatenate([each[name].reshape(-1) for each in found])
            )[low:high]
            for name in self._names
        }

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
