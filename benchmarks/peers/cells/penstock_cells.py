"""penstock itself: dataset.cells(form) through its threads; the setting is "form" or "form,block,fetch"."""

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
    order = penstock.orders.Blocks(*map(int, blocks)) if blocks else "uniform"
    chosen = {"csr": "csr", "dense": Dense(), "ranked": Ranked(2048)}[form]
    view = penstock.open(path).cells(chosen, genes=range(GENES))
    return iter(penstock.Loader(view, rows, order=order, seed=1))


def look(batch: Any) -> int:
    for name in batch:
        assert batch[name] is not None
    if "gene" in batch:
        assert batch.csr is not None
    return len(batch.indices)


if __name__ == "__main__":
    run(make, look)
