"""A shuffle on disk beside two `cp -r` of the same dataset, which read and write as many bytes as its two passes."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import penstock
from results import Result, alternate, ratios
from workloads import Corpora

WINDOW = 2048
PARTS = 5  # of the dataset; one of them fits into memory
TARGET = 0.33
CACHE = "read before, synced at the end"


def measure(corpora: Corpora) -> list[Result]:
    data = corpora.documents()
    folder = corpora.folder / "shuffled"
    shutil.rmtree(folder, ignore_errors=True)
    size = sum(file.stat().st_size for file in data.rglob("*") if file.is_file())
    memory = max(1 << 20, size // PARTS)
    shuffle = partial(penstock.shuffle, data, seed=1, memory=memory)
    within = f"memory of {memory / 2**20:,.0f} MiB"
    ways: dict[str, Callable[[Path], Any]] = {
        "two cp -r and a sync": partial(copy_twice, data),
        f"penstock, documents, {within}": partial(shuffle, documents=True),
        f"penstock, windows of {WINDOW} records, {within}": partial(shuffle, window=WINDOW),
    }
    runs = [partial(seconds, way, folder) for way in ways.values()]
    found = dict(zip(ways, alternate(corpora.size.repeats, runs), strict=True))
    copies, *ours = found.items()
    results = [Result("shuffle", what, "s", values, CACHE, size) for what, values in found.items()]
    for what, values in ours:
        quotient = ratios(copies[1], values)
        results.append(Result("shuffle", f"{copies[0]} / {what}", "ratio", quotient, CACHE, size, at_least=TARGET))
    return results


def seconds(way: Callable[[Path], Any], folder: Path) -> float:
    """Removing what was written is not in it, nor what others have written."""
    folder.mkdir()
    os.sync()
    begin = time.perf_counter()
    way(folder / "out")
    taken = time.perf_counter() - begin
    shutil.rmtree(folder)
    return taken


def copy_twice(data: Path, out: Path) -> None:
    out.mkdir()
    for name in ("one", "two"):
        subprocess.run(["cp", "-r", data, out / name], check=True)
    subprocess.run(["sync", "-f", out], check=True)
