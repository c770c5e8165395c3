"""What a condition on documents' columns costs: from `dataset.where` to a view, and to its first batch."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import penstock
from results import Result, alternate, warm
from workloads import BATCH, Corpora, made

CONDITION = "score > 0.8 and lang = 'en'"  # a fifth of a half
AT_ONCE = 1_000_000
WINDOW = 4


def measure(corpora: Corpora) -> list[Result]:
    count = corpora.size.where_documents
    path = made(corpora.folder, f"where-{count}", partial(write, count=count))
    warm(file for file in path.rglob("*") if file.is_file())
    dataset = penstock.open(str(path))
    share = len(dataset.where(CONDITION)) / count
    runs: dict[str, Callable[[], Any]] = {
        "documents": lambda: dataset.where(CONDITION).documents(),
        "the first batch of them": lambda: first_batch(dataset),
        f"windows of {WINDOW} records in them": lambda: dataset.where(CONDITION).windows(WINDOW),
    }
    found = alternate(corpora.size.repeats, [partial(seconds, run) for run in runs.values()])
    scale = f"{CONDITION}, two columns of {count:,} documents, {share:.0%} chosen"
    lines = [
        Result("where", f"{scale}: {what}", "s", values, "warm", at_most=2 if "windows" not in what else None)
        for what, values in zip(runs, found, strict=True)
    ]
    view = dataset.where(CONDITION).documents()
    indices = np.random.default_rng(0).permutation(len(view))[:AT_ONCE]
    picks = [seconds(lambda: view.base_indices(indices)) / len(indices) * 1e9 for _ in range(corpora.size.repeats)]
    return [*lines, Result("where", "an observation's number in the whole view, at random", "ns", tuple(picks), "warm")]


def seconds(run: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def first_batch(dataset: penstock.Dataset) -> None:
    view = dataset.where(CONDITION).documents(metadata=False)
    with penstock.Loader(view, BATCH, framework="numpy", rank=0, world_size=1) as loader:
        next(loader)


def write(path: Path, count: int) -> None:
    """Documents of one token with a score from 0 to 1 and one of six languages, half of them English."""
    random = np.random.default_rng(5)
    names = np.array(["en", "de", "fr", "it", "es", "nl"])
    with penstock.Writer(str(path), {"token": "u2"}, columns={"score": "f4", "lang": "category"}) as writer:
        for begin in range(0, count, AT_ONCE):
            part = min(AT_ONCE, count - begin)
            numbers = np.where(random.random(part) < 0.5, 0, random.integers(1, len(names), part))
            values = {"score": random.random(part, np.float32), "lang": names[numbers]}
            token = np.zeros(part, np.uint16)
            writer.append_batch(np.ones(part, np.int64), columns=values, token=token)
