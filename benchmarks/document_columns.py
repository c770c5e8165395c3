"""What the columns of documents cost: windows with all of them beside windows with inputs and labels alone."""

from __future__ import annotations

import itertools
import statistics
import time
from functools import partial
from typing import Any

import penstock
from penstock.columns import Labels, LossMask, PerSpan
from ready_batch import STEP_SECONDS, busy, clock_ns
from results import Result, alternate, ratios, warm
from workloads import BATCH, PREFETCH, TOKEN_BYTES, WINDOW, Corpora

WARM_UP_BATCHES = 64
SEQUENCES = ["cu_seqlens", "position_ids", "document_ids"]
MOST_DOCUMENTS = 256


def measure(corpora: Corpora) -> list[Result]:
    return [*throughput(corpora), *ready(corpora)]


def throughput(corpora: Corpora) -> list[Result]:
    results = []
    for what, path, field in (
        ("records {token u4}, the mask by the token", corpora.documents(), "token"),
        ("records {token u4, loss u1}, the mask by loss", corpora.documents_with_loss(), "loss"),
    ):
        warm(file for file in path.rglob("*") if file.is_file())
        view = penstock.open(str(path)).windows(WINDOW, lookahead=1, metadata="spans")
        columns = [*SEQUENCES, Labels(cross_document=False), LossMask(field=field)]
        runs = [partial(windows_per_second, view, each, corpora.size.seconds) for each in ([], columns)]
        none, every = alternate(corpora.size.repeats, runs)
        results += [
            line(f"inputs and labels, {what}", "windows/s", none),
            line(f"with all document columns, {what}", "windows/s", every),
            line(f"with / without, {what}", "ratio", ratios(every, none), at_least=0.75),
        ]
    return results


def line(what: str, unit: str, values: tuple[float, ...], at_least: float | None = None) -> Result:
    return Result("document columns", what, unit, values, "warm", WINDOW * TOKEN_BYTES, at_least=at_least)


def windows_per_second(view: penstock.View, columns: list[Any], seconds: float) -> float:
    """Windows that next() gives in `seconds`, int32, by a loader of its own after some batches to warm up."""
    with loader(view, columns) as given:
        for _ in itertools.islice(given, WARM_UP_BATCHES):
            pass
        batches = 0
        begin = now = time.perf_counter()
        while now - begin < seconds:
            next(given)
            batches += 1
            now = time.perf_counter()
    return batches * BATCH / (now - begin)


def loader(view: penstock.View, columns: list[Any]) -> penstock.Loader:
    options: dict[str, Any] = {"dtype": "int32", "prefetch": PREFETCH, "columns": columns}
    if columns and "cu_seqlens" in columns:
        options["max_documents"] = MOST_DOCUMENTS
    return penstock.Loader(view, BATCH, rank=0, world_size=1, **options)


def ready(corpora: Corpora) -> list[Result]:
    """The main thread's work for a ready batch: with all columns that the threads fill; with functions of metadata."""
    path = corpora.documents()
    view = penstock.open(str(path)).windows(WINDOW, lookahead=1)
    length = LossMask(spans=lambda metadata: [[0, 1 << 40]])
    share = PerSpan("share", lambda metadata: 0.5, "f4")
    filled = [*SEQUENCES, Labels(cross_document=False), LossMask(field="token")]
    cases = [
        ("no columns", [], 15.0),
        ("columns that the threads fill", filled, 15.0),
        ("and two functions of metadata", [*filled, length, share], None),
    ]
    runs = [partial(per_ready_batch, view, columns, corpora.size.batches) for _, columns, _ in cases]
    found = alternate(corpora.size.repeats, runs)
    return [
        Result(
            "document columns", f"main thread, {what}", "µs", values, "warm", BATCH * WINDOW * TOKEN_BYTES, at_most=most
        )
        for (what, _, most), values in zip(cases, found, strict=True)
    ]


def per_ready_batch(view: penstock.View, columns: list[Any], batches: int) -> float:
    """The median CPU time in µs of next() and of access to inputs and labels, when a batch is taken every 2 ms."""
    times = []
    with loader(view, columns) as given:
        held = next(given)
        for _ in range(batches):
            busy(STEP_SECONDS)
            begin = time.thread_time_ns()
            batch = next(given)
            held = (batch, batch.inputs, batch.labels)
            times.append(time.thread_time_ns() - begin)
    del held
    return (statistics.median(times) - clock_ns()) / 1e3
