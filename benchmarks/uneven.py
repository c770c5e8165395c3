"""What `uneven="pad"` costs: batches of a rank that are dealt evenly, and of one that has padding in each."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import penstock
from results import Result, alternate, ratios, warm
from workloads import BATCH, TOKEN_BYTES, WINDOW, Corpora

RANKS = 3
#: What is measured: (size of the global batch, rank, `uneven=`).
CASES = {
    "dealt evenly": (RANKS * BATCH, 0, "refuse"),
    'dealt evenly, uneven="pad"': (RANKS * BATCH, 0, "pad"),
    'a row less, uneven="pad"': (RANKS * BATCH - 1, RANKS - 1, "pad"),
}
AT_LEAST = 0.95
ROUNDS = 2  # of each repeat: the loaders in turn
BATCHES = 20  # times those of a repeat, so that what others read ahead meanwhile is little


def measure(corpora: Corpora) -> list[Result]:
    path = corpora.tokens()
    warm([path])
    view = penstock.open(str(path), dtype="u4").windows(WINDOW, lookahead=1)
    loaders = [loader(view, *case) for case in CASES.values()]
    batches = BATCHES * corpora.size.batches
    for each in loaders:
        batches_per_second(each, corpora.size.batches)
    repeats = ROUNDS * corpora.size.repeats
    found = alternate(repeats, [partial(batches_per_second, each, batches) for each in loaders])
    for each in loaders:
        each.close()
    size = BATCH * WINDOW * TOKEN_BYTES
    lines = [
        Result("uneven", f"{what}: processor time", "batches/s", values, "warm", size)
        for what, values in zip(CASES, found, strict=True)
    ]
    for what, values in list(zip(CASES, found, strict=True))[1:]:
        compared = ratios(values, found[0])
        lines.append(Result("uneven", f"{what} / without", "ratio", compared, "warm", at_least=AT_LEAST))
    return lines


def loader(view: penstock.View, size: int, rank: int, uneven: str) -> penstock.Loader:
    given: dict[str, Any] = {"rank": rank, "world_size": RANKS, "framework": "numpy", "uneven": uneven}
    return penstock.Loader(view, global_batch_size=size, **given)


def batches_per_second(loader: penstock.Loader, batches: int) -> float:
    """With inputs and labels, by a second of processor time of all threads: other processes have no part in it."""
    begin = time.process_time()
    for _ in range(batches):
        batch = next(loader)
        assert batch.inputs.shape == batch.labels.shape
    return batches / (time.process_time() - begin)
