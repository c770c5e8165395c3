"""No loader: windows gathered from a mapping in the order of a permutation, the ceiling of what Python can do alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import job
import numpy as np
from numpy.random import default_rng


class BareGather(job.Peer):
    name = "bare gather from a mapping"
    packages = ("numpy",)
    order = "uniform"
    dtypes = ("int64", "uint32")
    settings = (job.TRAINING_THREAD,)
    note = "no loader, no state: NumPy arrays, what a batch costs at the least in Python"

    def __init__(self, setup: job.Setup) -> None:
        super().__init__(setup)
        self._windows = setup.matrix()

    def epoch(self, number: int) -> Iterator[Any]:
        setup = self.setup
        order = default_rng((setup.seed, number)).permutation(setup.windows)[setup.rank :: setup.world]
        cast = setup.dtype == "int64"
        for begin in range(0, len(order), setup.batch):
            chosen = order[begin : begin + setup.batch]
            # One pass over the tokens either way: rows are cast as they are copied.
            yield self._cast(chosen) if cast else self._windows[chosen]

    def _cast(self, chosen: np.ndarray) -> np.ndarray:
        out = np.empty((len(chosen), self.setup.window), np.int64)
        for row, index in enumerate(chosen):
            out[row] = self._windows[index]
        return out


if __name__ == "__main__":
    job.main(BareGather)
