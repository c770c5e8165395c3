"""The main thread's work for a batch that is ready: CPU time of next() and of access to what a training step takes."""

from __future__ import annotations

import importlib
import importlib.util
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import penstock
from results import Result, alternate, warm
from workloads import BATCH, PREFETCH, TOKEN_BYTES, WINDOW, Corpora

STEP_SECONDS = 0.002  # what a training step would take: long enough for the threads to fill every batch


def measure(corpora: Corpora) -> list[Result]:
    path = corpora.tokens()
    warm([path])
    dataset = penstock.open(str(path), dtype="u4")
    frameworks = ["numpy", *(["torch"] if importlib.util.find_spec("torch") else [])]
    ways: tuple[tuple[Callable[..., float], str, float | None], ...] = (
        (partial(per_ready_batch, between=busy), "a batch every 2 ms, at work in between", 15),
        (partial(per_ready_batch, between=time.sleep), "a batch every 2 ms, asleep in between", 15),
        (per_batch, "back to back, its share of reading included", None),
    )
    results = []
    for way, what, target in ways:
        sample = partial(way, dataset, batches=corpora.size.batches)
        cases = [
            (f"main thread, {name}, lookahead={more}", partial(sample, name, more), batch_bytes(more), target)
            for name in frameworks
            for more in (0, 1)
        ]
        if target:  # beside the least that Python could do
            cases += [
                (f"one empty array of {name}", partial(sample, name, 0, reference=True), 0, None) for name in frameworks
            ]
        found = alternate(corpora.size.repeats, [each for _, each, _, _ in cases])
        for (figure, _, size, limit), values in zip(cases, found, strict=True):
            results.append(Result("ready batch", f"{figure}, {what}", "µs", values, "warm", size, at_most=limit))
    return results


def batch_bytes(lookahead: int) -> int:
    return BATCH * (WINDOW + lookahead) * TOKEN_BYTES


def per_batch(dataset: penstock.Dataset, framework: str, lookahead: int, batches: int) -> float:
    """The mean CPU time in µs of the main thread for a batch when it does nothing else: the core's caches stay its own.

    No batch is ready then, so what waiting costs is in it: the main thread reads with the others.
    """
    view = dataset.windows(WINDOW, lookahead=lookahead)
    use = use_labels if lookahead else use_field
    with penstock.Loader(view, batch_size=BATCH, rank=0, world_size=1, framework=framework) as loader:
        held = [take(loader, use) for _ in range(PREFETCH)][-1]
        begin = time.thread_time_ns()
        for _ in range(10 * batches):
            held = take(loader, use)
        taken = time.thread_time_ns() - begin
    del held
    return taken / (10 * batches) / 1e3


def per_ready_batch(
    dataset: penstock.Dataset,
    framework: str,
    lookahead: int,
    batches: int,
    between: Callable[[float], None],
    reference: bool = False,
) -> float:
    """The median CPU time in µs of a ready batch; what reading the clock costs is taken off.

    It includes next(), access to the arrays and letting go of the batch before. With `reference` it is that of making
    one empty array, in the same place of the same loop; the batch is taken while nobody looks at the clock.
    """
    view = dataset.windows(WINDOW, lookahead=lookahead)
    use = use_labels if lookahead else use_field
    empty = importlib.import_module(framework).empty
    times = []
    with penstock.Loader(view, batch_size=BATCH, rank=0, world_size=1, framework=framework) as loader:
        held = take(loader, use)
        for _ in range(batches):
            between(STEP_SECONDS)
            begin = time.thread_time_ns()
            made = empty(0) if reference else take(loader, use)
            times.append(time.thread_time_ns() - begin)
            held = take(loader, use) if reference else made
    del held
    return (statistics.median(times) - clock_ns()) / 1e3


def busy(seconds: float) -> None:
    """Keeps the core: what Python does between two calls that launch kernels."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def take(loader: penstock.Loader, use: Callable[[Any], Any]) -> Any:
    batch = next(loader)
    return batch, use(batch)


def use_labels(batch: Any) -> Any:
    return batch.inputs, batch.labels


def use_field(batch: Any) -> Any:
    return batch["token"]


def clock_ns() -> float:
    """What two readings of the thread's clock are apart when nothing is between them."""
    times = []
    for _ in range(1000):
        begin = time.thread_time_ns()
        times.append(time.thread_time_ns() - begin)
    return statistics.median(times)
