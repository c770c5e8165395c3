"""Cold reads of small windows: what blocks gain over the uniform order, with what they cost in mixing beside it.

Windows of 256 tokens, 1 KiB, in batches of 64, of a corpus larger than the memory that may cache it: in the uniform
order, in blocks of 4 to 256 windows that are mixed within fetches of 4,096, and one after the other. fio reads 20 KiB
at random places: a block of 16 windows in whole pages. Entropy: the corpus is cut into 14 equal stretches, as an atlas
of cells into plates; the entropy in bits of the stretches that a batch's windows come from, its mean over batches.
"""

from __future__ import annotations

import shutil
from functools import partial
from typing import Any

import cold
import coldness
import numpy as np
import penstock
from results import Result, alternate, left_out, ratios
from windows import windows_per_second
from workloads import TOKEN_BYTES, Corpora

WINDOW = 256
BATCH = 64
FETCH = 4096
BLOCKS = (4, 16, 64, 256)
PLATES = 14
ORDERS: dict[str, Any] = {
    "uniform": "uniform",
    **{f"Blocks({block}, {FETCH})": (block, FETCH) for block in BLOCKS},
    "sequential": "sequential",
}
FIO_BYTES = 20 << 10
TIMES_UNIFORM = 6.0  # Blocks(16, 4096), or …
OF_FIO = 0.7  # … of fio's reads, each of which is a block of 16
OF_SEQUENTIAL = 0.8  # Blocks(256, 4096)


def measure(corpora: Corpora) -> list[Result]:
    path = corpora.cold_tokens()
    seconds = corpora.size.cold_seconds
    stayed: list[float] = []

    def cold_run(load: Any) -> float:
        stayed.append(coldness.drop([path]))
        return float(load())

    with coldness.read_ahead(path) as ahead, coldness.memory_bound(corpora.size.cold_bound) as (group, bound):
        load = partial(windows_per_second, [path], "u4", 0, {}, seconds, group, window=WINDOW, batch=BATCH)
        loads = [partial(load, order=order) for order in ORDERS.values()]
        if shutil.which("fio") is None:
            left_out("blocks: fio", "it is not installed")
        else:
            loads.append(partial(cold.fio_reads, path, FIO_BYTES, FIO_BYTES, seconds))
        found = alternate(min(5, corpora.size.repeats), [partial(cold_run, each) for each in loads])
    state = f"cold: dropped ({max(stayed):.1%} stayed), no window twice, {ahead}, {bound}"
    line = partial(Result, "blocks", cache=state, bytes=WINDOW * TOKEN_BYTES)
    speeds = dict(zip(ORDERS, found, strict=False))
    results = [line(name, "windows/s", values) for name, values in speeds.items()]
    fio = found[len(ORDERS) :]
    for reads in fio:
        results.append(line("fio, 20 KiB each, times 16", "windows/s", tuple(16 * value for value in reads)))
    results += targets(line, speeds, fio)
    view = penstock.open(str(path), dtype="u4").windows(WINDOW)
    for name, order in ORDERS.items():
        results.append(line(f"entropy of a batch: {name}", "bits", entropies(view, order)))
    return results


def targets(line: Any, speeds: dict[str, tuple[float, ...]], fio: list[tuple[float, ...]]) -> list[Result]:
    """Where the disk answers small reads as fast as large ones, the first line is fio's, not uniform's."""
    blocks, wide = speeds[f"Blocks(16, {FETCH})"], speeds[f"Blocks(256, {FETCH})"]
    times = ratios(blocks, speeds["uniform"])
    of_fio = [ratios(blocks, (16 * value for value in reads)) for reads in fio]
    reached = any(sorted(values)[len(values) // 2] >= OF_FIO for values in of_fio)
    results = [
        line(f"Blocks(16, {FETCH}) / uniform", "ratio", times, at_least=None if reached else TIMES_UNIFORM),
        *(line(f"Blocks(16, {FETCH}) / fio times 16", "ratio", values, at_least=OF_FIO) for values in of_fio),
    ]
    return [
        *results,
        line(f"Blocks(256, {FETCH}) / sequential", "ratio", ratios(wide, speeds["sequential"]), at_least=OF_SEQUENTIAL),
    ]


def entropies(view: penstock.View, order: Any) -> tuple[float, ...]:
    """Mean entropy of the plates in a batch, for three seeds."""
    chosen = order if isinstance(order, str) else penstock.orders.Blocks(*order)
    found = []
    for seed in range(3):
        job = penstock.Job(view, global_batch_size=BATCH, seed=seed, order=chosen, epochs=1)
        indices = job.picks(0, min(len(view), 1024 * BATCH) // BATCH * BATCH)["index"]
        plates = (indices.astype(np.uint64) * PLATES // len(view)).reshape(-1, BATCH)
        found.append(float(np.mean([entropy(batch) for batch in plates])))
    return tuple(found)


def entropy(labels: np.ndarray[Any, Any]) -> float:
    shares = np.unique(labels, return_counts=True)[1] / len(labels)
    return float(-(shares * np.log2(shares)).sum())
