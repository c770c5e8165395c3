"""Sources of the tests of mixtures, and what a loader gives of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import penstock

TYPES = {"web": "u2", "code": "u4", "books": "u2"}
LENGTHS = {"web": 300, "code": 90, "books": 33}
WINDOW = 64


def write_sources(folder: Path) -> dict[str, penstock.Dataset]:
    for number, (name, kind) in enumerate(TYPES.items()):
        random = np.random.default_rng(number)
        with penstock.Writer(folder / name, fields={"token": kind}, metadata="json") as writer:
            for document in range(LENGTHS[name]):
                length = int(random.integers(20, 90))
                writer.append(token=random.integers(0, 60_000, length), metadata={"source": name, "number": document})
    return {name: penstock.open(folder / name) for name in TYPES}


def loader(mixture: Any, **options: Any) -> penstock.Loader:
    options = {"global_batch_size": 12, "seed": 3, "framework": "numpy", "threads": 2, **options}
    return penstock.Loader(mixture, **options)


def rows(batch: penstock.Batch) -> list[tuple[int, int, int]]:
    """(source, epoch, index) of the rows that are there."""
    found = zip(batch.sources.tolist(), batch.epochs.tolist(), batch.indices.tolist(), strict=True)
    return [row for row, valid in zip(found, batch.valid.tolist(), strict=True) if valid]


def all_rows(mixture: Any, **options: Any) -> list[tuple[int, int, int]]:
    return [row for batch in loader(mixture, **options) for row in rows(batch)]


def turns(by_rank: list[list[Any]]) -> list[Any]:
    """The rows of a global batch of those of its ranks."""
    return [each[row] for row in range(max(map(len, by_rank))) for each in by_rank if row < len(each)]


def rows_of_ranks(mixture: Any, ranks: int, state: dict[str, Any] | None = None, **options: Any) -> list[list[Any]]:
    """The rows of each global batch, from a state on."""
    loaders = [loader(mixture, rank=rank, world_size=ranks, **options) for rank in range(ranks)]
    for each in loaders if state is not None else ():
        assert each.load_state_dict(state).position == state["position"]
    return [turns([rows(batch) for batch in batches]) for batches in zip(*loaders, strict=True)]
