"""CPU time of verify, opening, append, combine and shuffle for each shard, of datasets of more and more small shards.

`python benchmarks/run.py --only per-shard` repeats it. The datasets lie in memory where /dev/shm has room: what the
package does for a shard is measured, not how long a disk takes to sync it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import penstock
from results import Result, alternate, ratios
from workloads import ENTRY_BYTES, Corpora

COUNTS, QUICK_COUNTS = (2_500, 10_000, 40_000), (3, 12)
REPEATS = 3  # some three minutes in all
RECORDS = 64  # of a shard, which is one document
MEMORY = Path("/dev/shm")
ROOM = 8 << 30  # for two datasets of the most shards, nine files each
#: More than this many times the few shards' time for a shard is not linear.
MOST = 2.0


def measure(corpora: Corpora) -> list[Result]:
    counts = QUICK_COUNTS if corpora.quick else COUNTS
    in_memory = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM
    corpora.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="penstock-", dir=MEMORY if in_memory else corpora.folder) as name:
        folder = Path(name)
        one = written(folder / "one", 1)
        for count in counts:
            written(folder / str(count), count)
        found = {
            what: alternate(
                min(corpora.size.repeats, REPEATS), [partial(ms, work, folder, one, count) for count in counts]
            )
            for what, work in WORKS.items()
        }
    cache = f"{'in memory' if in_memory else 'on disk'}, CPU time"
    return [line for what, values in found.items() for line in lines(what, counts, values, cache)]


def lines(what: str, counts: tuple[int, ...], found: list[tuple[float, ...]], cache: str) -> list[Result]:
    results = [
        Result("per-shard", f"{what}, {count:,} shards: each shard", "ms", values, cache)
        for count, values in zip(counts, found, strict=True)
    ]
    text = f"{what}: a shard of {counts[-1]:,} / one of {counts[0]:,}"
    return [*results, Result("per-shard", text, "ratio", ratios(found[-1], found[0]), cache, at_most=MOST)]


def written(path: Path, shards: int) -> Path:
    with penstock.Writer(str(path), fields={"token": "u4"}, metadata="raw", shard_size=1) as writer:
        for number in range(shards):
            tokens = np.arange(number, number + RECORDS, dtype=np.uint32)
            writer.append(token=tokens, metadata=number.to_bytes(8, "little") * (ENTRY_BYTES // 8))
    return path


def ms(work: Callable[[Path, Path, Path], float], folder: Path, one: Path, count: int) -> float:
    """Of each shard."""
    out = folder / "out"
    taken = work(folder / str(count), one, out)
    shutil.rmtree(out, ignore_errors=True)
    return taken / count * 1e3


def seconds(call: Callable[..., Any], *given: Any, **options: Any) -> float:
    """CPU time of the process, all threads: others on the machine change it less than they change the clock's."""
    begin = time.process_time()
    call(*given, **options)
    return time.process_time() - begin


def verified(data: Path, one: Path, out: Path) -> float:
    def verify() -> None:
        if not penstock.verify(data):
            raise RuntimeError(f"{data}: verify names problems")

    return seconds(verify)


def opened(data: Path, one: Path, out: Path) -> float:
    return seconds(lambda: penstock.open(data).documents())


def appended(data: Path, one: Path, out: Path) -> float:
    """One shard more, behind a manifest of many."""
    shutil.copytree(data, out, copy_function=os.link)  # the manifest is replaced, not written into
    return seconds(penstock.append, out, one)


def combined(data: Path, one: Path, out: Path) -> float:
    return seconds(penstock.combine, [data], out)


def shuffled(data: Path, one: Path, out: Path) -> float:
    return seconds(penstock.shuffle, data, out, seed=1, documents=True)


WORKS = {
    "verify": verified,
    "open and documents()": opened,
    "append of one shard": appended,
    "combine": combined,
    "shuffle of documents": shuffled,
}
