"""The main thread's work for a batch that is ready: CPU time of next() and of access to what a training step takes."""

from __future__ import annotations

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
    cases = [(framework, lookahead) for framework in frameworks for lookahead in (0, 1)]
    ways: tuple[tuple[Callable[..., float], str, float | None], ...] = (
        (partial(per_ready_batch, between=busy), "a batch every 2 ms, at work in between", 15),
        (partial(per_ready_batch, between=time.sleep), "a batch every 2 ms, asleep in between", 15),
        (per_batch, "back to back, its share of reading included", None),
    )
    results = []
    for way, what, target in ways:
        samples = [partial(way, dataset, *case, corpora.size.batches) for case in cases]
        for case, values in zip(cases, alternate(corpora.size.repeats, samples), strict=True):
            results.append(line(*case, what, values, target))
    return results


def line(framework: str, lookahead: int, what: str, values: tuple[float, ...], target: float | None) -> Result:
    figure = f"main thread, {framework}, lookahead={lookahead}, {what}"
    return Result(
        "ready batch", figure, "µs", values, "warm", BATCH * (WINDOW + lookahead) * TOKEN_BYTES, at_most=target
    )


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
    dataset: penstock.Dataset, framework: str, lookahead: int, batches: int, between: Callable[[float], None]
) -> float:
    """The median CPU time in µs of a ready batch; what reading the clock costs is taken off.

    It includes next(), access to the arrays and letting go of the batch before.
    """
    view = dataset.windows(WINDOW, lookahead=lookahead)
    use = use_labels if lookahead else use_field
    times = []
    with penstock.Loader(view, batch_size=BATCH, rank=0, world_size=1, framework=framework) as loader:
        held = take(loader, use)
        for _ in range(batches):
            between(STEP_SECONDS)
            begin = time.thread_time_ns()
            held = take(loader, use)
            times.append(time.thread_time_ns() - begin)
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
