"""scDataset over a backed .h5ad file, CSR of a batch in memory; the setting is "block,fetch factor"."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anndata
from clock import epochs, run
from scdataset import BlockShuffling, scDataset


def make(path: str, rows: int, setting: str) -> Iterator[Any]:
    block, factor = map(int, setting.split(","))
    collection = anndata.read_h5ad(path, backed="r")
    strategy = BlockShuffling(block_size=block)
    options = {"fetch_callback": lambda cells, indices: cells[indices].to_memory().X, "seed": 1}
    return epochs(lambda: scDataset(collection, strategy, batch_size=rows, fetch_factor=factor, **options))


if __name__ == "__main__":
    run(make, lambda batch: batch.shape[0])
