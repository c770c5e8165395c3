"""penstock itself: dataset.cells(form); the setting is "form", "form,bare" (no columns) or "form,block,fetch"."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import penstock
import torch  # noqa: F401 - which batch.csr is of: no memory of the loader's
from clock import run
from penstock.cells import Dense, Ranked

GENES = 62_710


def make(path: str, rows: int, setting: str) -> Iterator[Any]:
    form, *blocks = (setting or "csr").split(",")
    dataset = penstock.open(path)
    columns = [] if blocks == ["bare"] else list(dataset.columns)[:3]
    blocks = [] if blocks == ["bare"] else blocks
    order = penstock.orders.Blocks(*map(int, blocks)) if blocks else "uniform"
    chosen = {"csr": "csr", "dense": Dense(), "ranked": Ranked(2048)}[form]
    genes = {} if dataset.features is not None else {"genes": range(GENES)}
    view = dataset.cells(chosen, columns=columns, **genes)
    return iter(penstock.Loader(view, rows, order=order, seed=1))


def look(batch: Any) -> int:
    for name in batch:
        assert batch[name] is not None
    assert all(values is not None for values in batch.columns.values())
    if "gene" in batch:
        assert batch.csr is not None
    return len(batch.indices)


if __name__ == "__main__":
    run(make, look)
