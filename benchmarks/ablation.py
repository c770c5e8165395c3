"""The article's ablation on the same files: from a Python loop with a seek and a read for each entry, to penstock.

Windows of 4,096 records of 8 bytes in the ids layout, batches of 8, documents of about 800 tokens, entries of 160
bytes, all in the page cache. The first batch of every step is compared with penstock's: tokens, ids, entries.
"""

from __future__ import annotations

import importlib.util
import itertools
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import penstock
from ablation_steps import (
    Files,
    Step,
    find_by_loop,
    find_by_numba,
    find_by_numpy,
    pread,
    read_each,
    read_merged,
    seek_and_read,
)
from results import Result, alternate, ratios, warm
from throughput import windows_per_second
from workloads import BATCH, WINDOW, Corpora

NAIVE = "Python loop, a seek and a read for each entry"
TWO_THREADS = "penstock, 2 threads, as read"
TARGET = 145  # times as many batches as NAIVE: what the article gained
SEED = 7


def measure(corpora: Corpora) -> list[Result]:
    path = corpora.documents_with_ids()
    warm(file for file in path.rglob("*") if file.is_file())
    view = penstock.open(str(path)).windows(WINDOW)
    steps = article_steps(Files(path))
    check(view, steps)
    runs: dict[str, Callable[[], float]] = {
        what: partial(step_batches_per_second, step, len(view), corpora.size.seconds) for what, step in steps.items()
    }
    given = {"numpy": "as read", "torch": "int64"}
    for threads, framework in itertools.product((1, 2), given):
        if importlib.util.find_spec(framework) is not None:
            what = f"penstock, {threads} thread{'s' if threads > 1 else ''}, {given[framework]}"
            runs[what] = partial(loader_batches_per_second, view, threads, framework, corpora.size.seconds)
    found = dict(zip(runs, alternate(corpora.size.repeats, list(runs.values())), strict=True))
    bytes_each = BATCH * WINDOW * 8
    lines = [Result("ablation", what, "batches/s", values, "warm", bytes_each) for what, values in found.items()]
    quotient = ratios(found[TWO_THREADS], found[NAIVE])
    what = f"{TWO_THREADS} / {NAIVE}"
    return [*lines, Result("ablation", what, "times", quotient, "warm", bytes_each, at_least=TARGET)]


def article_steps(files: Files) -> dict[str, Step]:
    """In the order of the article; with numba where it is installed, else with NumPy alone."""
    steps = {
        "tokens alone, no metadata, pread": Step(files, pread, None, None),
        NAIVE: Step(files, seek_and_read, find_by_loop, read_each),
        "Python loop, pread": Step(files, pread, find_by_loop, read_each),
        "NumPy, pread": Step(files, pread, find_by_numpy, read_each),
        "NumPy, pread, merged": Step(files, pread, find_by_numpy, read_merged),
    }
    compiled = find_by_numba()
    if compiled is not None:
        steps["numba, pread"] = Step(files, pread, compiled, read_each)
        steps["numba, pread, merged"] = Step(files, pread, compiled, read_merged)
    return steps


def check(view: Any, steps: dict[str, Step]) -> None:
    """That every step gives what penstock gives; ValueError names one that does not."""
    with penstock.Loader(view, batch_size=BATCH, seed=SEED, rank=0, world_size=1, framework="numpy") as loader:
        batch = next(loader)
    numbers = np.full((BATCH, WINDOW), -1, np.int32)
    entries: list[list[bytes]] = [[] for _ in range(BATCH)]
    for span in batch.spans:
        numbers[span.row, span.start : span.stop] = len(entries[span.row])
        entries[span.row].append(span.raw)
    for what, step in steps.items():
        tokens, found, read = step.batch(batch.indices.tolist())
        same = np.array_equal(tokens, batch["token"])
        if step.find is not None:
            same &= np.array_equal(found, numbers) and [list(map(bytes, row)) for row in read] == entries
        if not same:
            raise ValueError(f"the first batch of the step {what!r} is not penstock's")


def step_batches_per_second(step: Step, windows: int, seconds: float) -> float:
    """By one thread, over windows in the order of a permutation."""
    order = batches_of(windows)
    step.batch(next(order))
    batches = 0
    begin = now = time.perf_counter()
    while now - begin < seconds:
        step.batch(next(order))
        batches += 1
        now = time.perf_counter()
    return batches / (now - begin)


def batches_of(windows: int) -> Iterator[list[int]]:
    """Indices of batches without end; made before they are asked for, thousands at once."""
    for epoch in itertools.count():
        permutation = penstock.Permutation(windows, SEED, epoch)
        for begin in range(0, windows - BATCH + 1, BATCH << 10):
            at_once = permutation(np.arange(begin, min(windows, begin + (BATCH << 10)), dtype=np.uint64)).tolist()
            yield from (at_once[i : i + BATCH] for i in range(0, len(at_once) - BATCH + 1, BATCH))


def loader_batches_per_second(view: Any, threads: int, framework: str, seconds: float) -> float:
    """By the loader, all bytes of all entries in each batch."""
    return windows_per_second(view, framework, threads, seconds, SEED) / BATCH
