"""What an order of a user's own costs: a loader with an array of indices in memory beside one in the uniform order."""

from __future__ import annotations

import itertools
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import penstock
from penstock import orders
from results import Result, alternate, ratios, warm
from workloads import BATCH, PREFETCH, TOKEN_BYTES, WINDOW, Corpora

INDICES, QUICK_INDICES = 1_000_000_000, 1_000_000  # uint32, mapped: 4 GB
SMALL_WINDOW, SMALL_BATCH = 16, 512  # where a batch is little but its order
AT_ONCE = 1 << 24  # indices that are made at once
WARM_UP_BATCHES = 64


def measure(corpora: Corpora) -> list[Result]:
    path = corpora.tokens()
    warm([path])
    count = QUICK_INDICES if corpora.quick else INDICES
    dataset = penstock.open(str(path), dtype="u4")
    with tempfile.TemporaryDirectory(prefix="penstock-custom-") as folder:
        file = Path(folder) / "order.npy"
        observations = len(dataset.windows(WINDOW))
        write_indices(file, count, observations)
        begin = time.perf_counter()
        order = orders.Custom(file)
        seconds = time.perf_counter() - begin
        results = [line("digest of the indices, made once", "s", (seconds,), count, count * 4)]
        for window, batch in ((WINDOW, BATCH), (SMALL_WINDOW, SMALL_BATCH)):
            results += loaded(corpora, dataset.windows(window)[:observations], batch, order, count)
    return results


def loaded(corpora: Corpora, view: penstock.View, batch: int, order: orders.Custom, count: int) -> list[Result]:
    bytes_each = view.window * TOKEN_BYTES
    runs = [partial(cpu_ns, view, batch, each, corpora.size.seconds) for each in ("uniform", order)]
    uniform, custom = alternate(corpora.size.repeats, runs)
    what = f"windows of {view.window:,}"
    return [
        line(f"uniform, {what}", "ns", uniform, count, bytes_each),
        line(f"custom, {what}", "ns", custom, count, bytes_each),
        line(f"custom / uniform, {what}", "ratio", ratios(custom, uniform), count, bytes_each, at_most=1.05),
    ]


def line(
    what: str, unit: str, values: tuple[float, ...], count: int, size: int, at_most: float | None = None
) -> Result:
    return Result("custom order", what, unit, values, f"warm, {count:,} indices", size, at_most=at_most)


def write_indices(file: Path, count: int, observations: int) -> None:
    """Random ones, as a shuffle that somebody made elsewhere."""
    indices = np.lib.format.open_memmap(file, "w+", np.uint32, (count,))
    random = np.random.default_rng(0)
    for begin in range(0, count, AT_ONCE):
        size = min(AT_ONCE, count - begin)
        indices[begin : begin + size] = random.integers(0, observations, size, np.uint32)
    indices.flush()


def cpu_ns(view: penstock.View, batch: int, order: Any, seconds: float) -> float:
    """Processor time of all threads for a window, over `seconds` of a loader's own after some batches to warm up."""
    options: dict[str, Any] = {"dtype": "int32", "prefetch": PREFETCH, "rank": 0, "world_size": 1}
    with penstock.Loader(view, batch, order=order, **options) as loader:
        for _ in itertools.islice(loader, WARM_UP_BATCHES):
            pass
        batches, begin, end = 0, time.process_time(), time.perf_counter() + seconds
        while time.perf_counter() < end:
            next(loader)
            batches += 1
        return (time.process_time() - begin) / batches / batch * 1e9
