"""What `checks=` costs: windows with metadata and documents, warm and cold; the first window of each of many shards."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import coldness
import numpy as np
import penstock
from layouts import files_of
from results import Result, alternate, ratios, warm
from workloads import BATCH, WINDOW, Corpora

CHECKS = ("none", "index", "all")
DOCUMENTS = 64  # a batch
AT_LEAST = 0.97  # of windows with metadata where the index is kept, by the default
FIRST = 0.85  # of what else the default checks
KEPT = 2 << 30  # max_bytes: the index, the directory and the entries fit


def measure(corpora: Corpora) -> list[Result]:
    path = corpora.documents()
    seconds = corpora.size.seconds
    results = []
    for what, size, load in (
        ("windows with metadata, index kept", WINDOW * 4, partial(windows, max_bytes=KEPT)),
        ("windows with metadata, index not kept", WINDOW * 4, partial(windows, max_bytes=0)),
        ("documents", 0, documents),
    ):
        warm(files_of(path))
        least = AT_LEAST if what.endswith("index kept") else FIRST
        results += compare(what, "warm", size, least, corpora.size.repeats, partial(load, path, seconds))
    results += cold(corpora, path)
    return [*results, *first_reads(corpora)]


def compare(what: str, cache: str, size: int, least: float, repeats: int, load: Callable[[str], float]) -> list[Result]:
    found = dict(zip(CHECKS, alternate(repeats, [partial(load, checks) for checks in CHECKS]), strict=True))
    line = partial(Result, "checks", cache=cache, bytes=size)
    results = [line(f'{what}: checks="{checks}"', "rows/s", found[checks]) for checks in CHECKS]
    for checks in CHECKS[1:]:
        target = least if checks == "index" else None
        results.append(
            line(f'{what}: "{checks}" / "none"', "ratio", ratios(found[checks], found["none"]), at_least=target)
        )
    return results


def rows_per_second(
    view: penstock.View, batch: int, seconds: float, warm_up: int | None = None, **options: Any
) -> float:
    """Of an endless loader, after `warm_up` batches; None: after an epoch's worth of what a view keeps was read."""
    with penstock.Loader(view, batch, rank=0, world_size=1, framework="numpy", **options) as loader:
        for _ in range(min(len(view) // batch, 20_000) if warm_up is None else warm_up):
            next(loader)
        batches, begin = 0, time.perf_counter()
        while time.perf_counter() - begin < seconds:
            next(loader)
            batches += 1
        return batches * batch / (time.perf_counter() - begin)


def windows(path: Path, seconds: float, checks: str, max_bytes: int) -> float:
    view = penstock.open(path, checks=checks).windows(WINDOW)
    return rows_per_second(view, BATCH, seconds, max_bytes=max_bytes)


def documents(path: Path, seconds: float, checks: str) -> float:
    return rows_per_second(penstock.open(path, checks=checks).documents(), DOCUMENTS, seconds)


def cold(corpora: Corpora, path: Path) -> list[Result]:
    """One pass out of an empty page cache, nothing kept before."""
    files = files_of(path)

    def run(checks: str) -> float:
        coldness.drop(files)
        view = penstock.open(path, checks=checks).windows(WINDOW)
        batches, begin = 0, time.perf_counter()
        with penstock.Loader(view, BATCH, rank=0, world_size=1, framework="numpy", epochs=1) as loader:
            for _ in loader:
                batches += 1
                if time.perf_counter() - begin > corpora.size.cold_seconds:
                    break
        return batches * BATCH / (time.perf_counter() - begin)

    return compare(
        "windows with metadata, first pass", "cold: dropped", WINDOW * 4, FIRST, min(5, corpora.size.repeats), run
    )


def first_reads(corpora: Corpora) -> list[Result]:
    """A window of each of many shards: each opens its files, and is compared with the manifest."""
    shards = 20 if corpora.quick else 10_000
    with tempfile.TemporaryDirectory(prefix="penstock-checks-") as folder:
        path = Path(folder) / "shards"
        with penstock.Writer(path, fields={"token": "u4"}, metadata="raw", shard_size=1) as writer:
            for number in range(shards):
                writer.append(token=np.full(64, number, "u4"), metadata=b"%06d" % number)

        def run(checks: str) -> float:
            view = penstock.open(path, checks=checks).windows(64)
            begin = time.perf_counter()
            for first in range(0, shards, 100):
                view.read(range(first, min(first + 100, shards)))
            return (time.perf_counter() - begin) / shards * 1e6

        run("none")
        found = dict(
            zip(CHECKS, alternate(min(5, corpora.size.repeats), [partial(run, each) for each in CHECKS]), strict=True)
        )
    return [
        Result("checks", f'{shards:,} shards, the first window of each: checks="{checks}"', "µs", found[checks], "warm")
        for checks in CHECKS
    ]
