"""Packed rows beside windows of as many records; what packing a document costs, and what rows waste."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import penstock
from layouts import files_of
from results import Result, alternate, ratios, warm
from workloads import BATCH, DOCUMENT_TOKENS, WINDOW, Corpora, Size

MEAN = WINDOW // 8  # records of a document
DEVIATION = 1.0  # of the logarithm of lengths
RATIO, MICROSECONDS, WASTE = 0.5, 0.5, 1.0
LOOPS: dict[str, dict[str, Any]] = {
    "int64, inputs and labels": {"framework": "torch"},
    "int32, inputs and labels": {"framework": "torch", "dtype": "int32"},
}


def measure(corpora: Corpora) -> list[Result]:
    size = corpora.size
    short = penstock.open(made(corpora.folder, size.metadata_tokens))
    line = partial(Result, "packing", cache="warm")
    results = []
    for fit in ("best", "first"):
        seconds, packing = zip(*(packed(short, fit) for _ in range(size.repeats)), strict=True)
        each = tuple(1e6 * value / short.spans for value in seconds)
        results.append(line(f"{fit} fit, a document, its length read from the index", "µs", each, at_most=MICROSECONDS))
        waste = (100 * packing[0].waste,)
        what = f"{fit} fit, documents of {MEAN} records on average, rows of {WINDOW:,}: waste"
        results.append(line(what, "%", waste, at_most=WASTE))
    usual = penstock.open(corpora.documents())
    for dataset, mean, least in ((usual, DOCUMENT_TOKENS, RATIO), (short, MEAN, None)):
        warm(files_of(Path(dataset.path)))
        for what, options in LOOPS.items():
            results += compare(line, dataset, f"documents of {mean} records, {what}", size, least, **options)
    return results


def compare(
    line: Any, dataset: penstock.Dataset, what: str, size: Size, least: float | None, **options: Any
) -> list[Result]:
    """Windows and packed rows, the latter without spans and with, in turn."""
    views = {
        "windows": dataset.windows(WINDOW, lookahead=1, metadata=False),
        "packed rows": dataset.packed(WINDOW, metadata=False),
        "packed rows with spans": dataset.packed(WINDOW, metadata="spans"),
    }
    loads = [partial(rows_per_second, view, size.seconds, **options) for view in views.values()]
    found = dict(zip(views, alternate(size.repeats, loads), strict=True))
    results = [line(f"{what}: {name}", "rows/s", values, bytes=4 * WINDOW) for name, values in found.items()]
    for name in ("packed rows", "packed rows with spans"):
        values = ratios(found[name], found["windows"])
        results.append(line(f"{what}: {name} / windows", "ratio", values, at_least=least))
    return results


def made(folder: Path, tokens: int) -> Path:
    """Documents of log-normal lengths, in shards of about 2^24 tokens."""
    path = folder / f"packing-{tokens}"
    if (path / "dataset.json").exists():
        return path
    random = np.random.default_rng(0)
    lengths = random.lognormal(np.log(MEAN) - DEVIATION**2 / 2, DEVIATION, tokens // MEAN).astype(np.uint64) + 1
    with penstock.Writer(path, {"token": "u4"}, "boundaries", shard_size=64 << 20) as writer:
        for part in np.array_split(lengths, max(1, tokens >> 20)):
            writer.append_batch(part, token=random.integers(0, 50_000, int(part.sum())).astype("u4"))
    return path


def packed(dataset: penstock.Dataset, fit: str) -> tuple[float, Any]:
    """Seconds, and what came of it."""
    begin = time.perf_counter()
    packing = dataset.packed(WINDOW, fit=fit).packing
    return time.perf_counter() - begin, packing


def rows_per_second(view: penstock.View, seconds: float, **options: Any) -> float:
    with penstock.Loader(view, BATCH, rank=0, world_size=1, **options) as loader:
        for _ in range(min(len(view) // BATCH, 2000)):
            next(loader)
        batches, begin = 0, time.perf_counter()
        while time.perf_counter() - begin < seconds:
            batch = next(loader)
            batch.inputs, batch.labels  # noqa: B018
            batches += 1
        return batches * BATCH / (time.perf_counter() - begin)
