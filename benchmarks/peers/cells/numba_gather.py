"""A gather that Numba compiles, on one thread: random cells of the same mapped records, into int32, float32, offsets.

Arrays of each batch are new, as a training loop's are that still holds the one before.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
from clock import run

RECORD = np.dtype([("gene", "<u2"), ("count", "<u2")])


@numba.njit  # type: ignore[misc]
def gather(genes: Any, counts: Any, starts: Any, cells: Any) -> Any:
    """CSR of `cells`: offsets [cells + 1], genes and counts of all of them."""
    offsets = np.empty(len(cells) + 1, np.int32)
    offsets[0] = 0
    for row, cell in enumerate(cells):
        offsets[row + 1] = offsets[row] + (starts[cell + 1] - starts[cell])
    columns = np.empty(offsets[-1], np.int32)
    values = np.empty(offsets[-1], np.float32)
    for row, cell in enumerate(cells):
        at, first = offsets[row], starts[cell]
        for i in range(offsets[row + 1] - at):
            columns[at + i] = genes[first + i]
            values[at + i] = counts[first + i]
    return offsets, columns, values


def make(path: str, rows: int, setting: str) -> Iterator[Any]:
    (shard,) = sorted(each for each in Path(path).iterdir() if each.is_dir())
    records = np.memmap(shard / "stream.bin", RECORD, "r")
    starts = np.ascontiguousarray(np.fromfile(shard / "metadata.index", "<u8").reshape(-1, 2)[:, 0]).astype(np.int64)
    random = np.random.default_rng(1)
    while True:
        order = random.permutation(len(starts) - 1)
        for first in range(0, len(order) - rows + 1, rows):
            yield gather(records["gene"], records["count"], starts, order[first : first + rows])


if __name__ == "__main__":
    run(make, lambda batch: len(batch[0]) - 1)
