"""Generated cells, and plain NumPy models of what forms make of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import penstock

Array = npt.NDArray[Any]


@dataclass
class Cells:
    """Cells as written: genes and values of each."""

    path: Path
    count: int  # of genes
    genes: list[Array]
    values: list[Array]

    @property
    def dataset(self) -> penstock.Dataset:
        return penstock.open(str(self.path))

    @property
    def x(self) -> Array:
        """float64 [cells, genes]."""
        made = np.zeros((len(self.genes), self.count))
        for row, genes, values in zip(made, self.genes, self.values, strict=True):
            row[genes] = values
        return made


def write_cells(
    folder: Path,
    cells: int = 83,
    genes: int = 300,
    types: tuple[str, str] = ("u2", "u2"),
    seed: int = 0,
    shard_cells: int = 30,
    extra: Sequence[str] = (),
) -> Cells:
    """Random cells in shards of `shard_cells`; some are empty, and some records are explicit zeros."""
    random = np.random.default_rng(seed)
    path = folder / f"cells-{seed}-{'-'.join(types)}"
    made = Cells(path, genes, [], [])
    fields = {"gene": types[0], "count": types[1]} | dict.fromkeys(extra, "u1")
    parts = []
    for first in range(0, cells, shard_cells):
        part = folder / f"part-{seed}-{'-'.join(types)}-{first}"
        parts.append(str(part))
        with penstock.Writer(str(part), fields=fields, metadata="json") as writer:
            for cell in range(first, min(cells, first + shard_cells)):
                count = 0 if cell % 17 == 3 else int(random.integers(1, genes // 2))
                chosen = np.sort(random.choice(genes, count, replace=False)).astype(types[0])
                values = np.minimum(random.geometric(0.4, count) - (random.random(count) < 0.05), 200)
                values = values.astype(types[1])
                if types[1].startswith("f"):
                    values = (values * random.random(count)).astype(types[1])
                more = {name: random.integers(0, 5, count) for name in extra}
                writer.append(gene=chosen, count=values, **more, metadata={"cell": cell})
                made.genes.append(chosen.astype(np.int64))
                made.values.append(values)
    penstock.combine(parts, str(path))
    return made


def normalized(x: Array, total: float | None, log1p: bool) -> Array:
    """scanpy's normalize_total and log1p, in float64."""
    if total is not None:
        sums = x.sum(axis=1)
        x = x / np.where(sums == 0, 1, sums / total)[:, None]
    return np.log1p(x) if log1p else x


def ranked(
    row: Array,
    length: int,
    tokens: Array | None = None,
    medians: Array | None = None,
    cls: int | None = None,
    eos: int | None = None,
    pad: int = 0,
) -> tuple[Array, Array]:
    """Geneformer's sentence of one dense row, ties by gene."""
    genes = np.arange(len(row))
    tokens = genes + 4 if tokens is None else tokens
    medians = np.ones(len(row)) if medians is None else medians
    taken = genes[(row > 0) & (tokens >= 0)]
    keys = row[taken].astype(np.float64) / medians[taken]
    taken = taken[np.argsort(-keys, kind="stable")]
    room = length - (cls is not None) - (eos is not None)
    words = [*([] if cls is None else [cls]), *tokens[taken][:room], *([] if eos is None else [eos])]
    return padded(words, length, pad), np.arange(length) < len(words)


def binned(
    row: Array,
    bins: int,
    length: int,
    choose: str,
    tokens: Array | None = None,
    cls: int | None = None,
    pad: int = 0,
    pad_value: int = -2,
) -> tuple[Array, Array, Array]:
    """scGPT's bins of one dense row; `choose` is "top" or "first"."""
    genes = np.arange(len(row))
    tokens = genes + 4 if tokens is None else tokens
    present = genes[row > 0]
    digits = np.zeros(len(row), np.int64)
    if len(present):
        edges = np.quantile(row[present].astype(np.float64), np.linspace(0, 1, bins - 1))
        digits[present] = np.digitize(row[present].astype(np.float64), edges)
    taken = present[tokens[present] >= 0]
    room = length - (cls is not None)
    if choose == "top":
        taken = np.sort(taken[np.argsort(-row[taken], kind="stable")][:room])
    taken = taken[:room]
    words = [*([] if cls is None else [cls]), *tokens[taken]]
    values = [*([] if cls is None else [0]), *digits[taken]]
    return padded(words, length, pad), padded(values, length, pad_value), np.arange(length) < len(words)


def padded(values: Sequence[int], length: int, pad: int) -> Array:
    made = np.full(length, pad, np.int64)
    made[: len(values)] = values
    return made
