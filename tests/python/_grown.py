"""A dataset that grows twice, and what loaders of it must give, for the tests of on_mismatch="grown"."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import penstock
from penstock import orders

WINDOW = 10
RECORDS = (137, 95, 260)  # of the shards: no multiples of the window, so that windows cross them
SIZES = (13, 23, 49)  # windows of the first one, two and three shards
ORDERS = {
    "uniform": "uniform",
    "sequential": "sequential",
    "blocks": orders.Blocks(2, 6),
    "lanes": orders.Blocks(3, 3, lanes=4),
}


def write(path: Path, count: int, seed: int) -> np.ndarray:
    """A dataset of one shard of so many random tokens, in documents."""
    random = np.random.default_rng(seed)
    tokens = random.integers(0, 60_000, count).astype(np.uint16)
    with penstock.Writer(path, {"token": "u2"}, "json") as writer:
        for number, part in enumerate(np.split(tokens, np.sort(random.integers(0, count, 9)))):
            writer.append(token=part, metadata={"shard": seed, "number": number})
    return tokens


@dataclass
class Grown:
    """The dataset as it was opened before it grew, when it had grown, and once more; and all of its tokens."""

    datasets: list[penstock.Dataset]
    tokens: np.ndarray

    def view(self, number: int) -> penstock.View:
        return self.datasets[number].windows(WINDOW)

    def loader(self, number: int, **options: Any) -> penstock.Loader:
        options = {"global_batch_size": 6, "seed": 3, "framework": "numpy", "threads": 1, **options}
        return penstock.Loader(self.view(number), on_mismatch="grown", **options)


def make_grown(folder: Path) -> Grown:
    """Appended to twice, and opened each time."""
    tokens = [write(folder / "corpus", RECORDS[0], 0)]
    datasets = [penstock.open(folder / "corpus")]
    for number in (1, 2):
        tokens.append(write(folder / f"more-{number}", RECORDS[number], number))
        penstock.append(folder / "corpus", folder / f"more-{number}")
        datasets.append(penstock.open(folder / "corpus"))
    assert [len(each.windows(WINDOW)) for each in datasets] == list(SIZES)
    return Grown(datasets, np.concatenate(tokens))


def stream(history: list[tuple[int, int]], epochs: int, order: str = "uniform", seed: int = 3) -> list[tuple[int, int]]:
    """(epoch, observation) of each position; `history` has (first epoch, which dataset)."""
    found = []
    for epoch in range(epochs):
        n = SIZES[[number for first, number in history if first <= epoch][-1]]
        indices = orders.resolve(ORDERS[order], n, seed).pick(epoch * n, 1, n)[0].tolist()
        assert sorted(indices) == list(range(n))
        found += [(epoch, index) for index in indices]
    return found


def end_of_epoch(position: int, *sizes: int) -> tuple[int, int]:
    """(number of the first epoch that begins at or after a position, where it begins), of epochs of these sizes."""
    begin = epoch = 0
    while begin < position:
        begin += sizes[min(epoch, len(sizes) - 1)]
        epoch += 1
    return epoch, begin


def rows(batch: penstock.Batch, tokens: np.ndarray) -> list[tuple[int, int]]:
    """(epoch, observation) of the valid rows, whose records are compared."""
    found = []
    for index, epoch, valid, row in zip(batch.indices, batch.epochs, batch.valid, batch["token"], strict=True):
        if valid:
            np.testing.assert_array_equal(row, tokens[index * WINDOW : (index + 1) * WINDOW])
            found.append((int(epoch), int(index)))
    return found


def rest(loaders: list[penstock.Loader], tokens: np.ndarray, steps: int | None = None) -> list[tuple[int, int]]:
    """What is left of the run, or some steps of it, of all ranks, in the order of positions."""
    found: list[tuple[int, int]] = []
    for batches in islice(zip(*loaders, strict=True), steps):
        of_ranks = [rows(batch, tokens) for batch in batches]
        found += [each[i] for i in range(max(map(len, of_ranks))) for each in of_ranks if i < len(each)]
    return found
