"""What size costs: the same figures at 10^6 to 10^12 tokens in 1 to 10,000 shards (sparse files of zeros)."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import penstock
from opening import first_batch
from results import Result, left_out
from workloads import BATCH, TOKEN_BYTES, Corpora

SMALL_WINDOW = 16  # records: so little is copied that planning, finding the shard and its file are what is measured
AT_ONCE = 500
WINDOWS = 20_000  # of the 62,500 that 10^6 tokens have
CACHE = "sparse files, manifest read before"
FIGURES = {
    "open to first batch": ("ms", "all_ms"),
    "load_state_dict to batch": ("ms", "resume_ms"),
    "resident memory, at most": ("MiB", "most_resident_mib"),
}


def measure(corpora: Corpora) -> list[Result]:
    results = []
    for tokens in corpora.size.grid_tokens:
        for shards in corpora.size.grid_shards:
            try:
                path = corpora.sparse_of(shards, tokens // shards)
            except OSError as error:  # a file system that has no files of terabytes
                left_out(f"sizes: {tokens:,} tokens in {shards:,} shards", str(error))
                continue
            results += point(corpora, path, tokens, shards)
    return results


def point(corpora: Corpora, path: Path, tokens: int, shards: int) -> list[Result]:
    """All figures at one size, fresh processes for all but the last."""
    first_batch(str(path), None)
    repeats = min(7, corpora.size.processes)
    # In the middle: there a resume is no start.
    runs = [first_batch(str(path), tokens // 4096 // 2) for _ in range(repeats)]
    where = f"{tokens:.0e} tokens, {shards:,} shard{'s' if shards > 1 else ''}".replace("e+0", "e").replace("e+", "e")
    at = {"tokens": float(tokens), "shards": float(shards)}
    results = [
        Result("sizes", f"{where}: {figure}", unit, tuple(run[key] for run in runs), CACHE, BATCH * 4097 * 4, at=at)
        for figure, (unit, key) in FIGURES.items()
    ]
    planned = tuple(window_ns(path, corpora.size.repeats))
    what = f"{where}: a window of {SMALL_WINDOW} records planned and read"
    return [*results, Result("sizes", what, "ns", planned, "warm", SMALL_WINDOW * TOKEN_BYTES, at=at)]


def window_ns(path: Path, repeats: int, reader: str = "auto") -> list[float]:
    """What a little window costs in the uniform order, by the clock, when the page cache has it: the loader's thread
    permutes, finds shard and file, and reads.
    """
    view = penstock.open(str(path), checks="none").windows(SMALL_WINDOW)  # sparse: no check values
    found = []
    options: dict[str, Any] = {"rank": 0, "world_size": 1, "threads": 1, "framework": "numpy", "reader": reader}
    with penstock.Loader(view, batch_size=AT_ONCE, **options) as loader:
        for _ in range(repeats + 1):
            loader.rewind()
            begin = time.perf_counter()
            for _ in range(WINDOWS // AT_ONCE):
                next(loader)
            found.append((time.perf_counter() - begin) / WINDOWS * 1e9)
    return found[1:]  # the first brought the pages in
