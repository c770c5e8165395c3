"""penstock.CollectionLoader over a backed .h5ad file, with the hook that scDataset gets there.

The setting is "block,fetch factor,threads", and ",beside" has the consumer wait for as long as the store needs for a
batch, which is measured first: a training step on a device that is as slow as the store.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

import anndata
import penstock
from clock import run


def read(cells: Any, indices: Any) -> Any:
    return cells[indices].to_memory().X


def loader(path: str, rows: int, block: int, factor: int, threads: int) -> penstock.CollectionLoader:
    order = penstock.orders.Blocks(block, -(-rows * factor // block) * block)
    collection = anndata.read_h5ad(path, backed="r")
    return penstock.CollectionLoader(collection, rows, order=order, seed=1, threads=threads, fetch_callback=read)


def seconds_a_batch(path: str, rows: int, block: int, factor: int) -> float:
    """What the store needs, over whole fetches after the first one."""
    each = loader(path, rows, block, factor, 0)
    for _ in islice(each, factor):
        pass
    begin = time.perf_counter()
    for _ in islice(each, 2 * factor):
        pass
    return (time.perf_counter() - begin) / (2 * factor)


def make(path: str, rows: int, setting: str) -> Iterator[Any]:
    numbers = setting.removesuffix(",beside").split(",")
    block, factor, threads = map(int, numbers)
    pause = seconds_a_batch(path, rows, block, factor) if setting.endswith(",beside") else 0.0
    for batch in loader(path, rows, block, factor, threads):
        yield batch
        if pause > 0:
            time.sleep(pause)


if __name__ == "__main__":
    run(make, lambda batch: batch.shape[0])
