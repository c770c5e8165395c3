"""Imports of token files beside `cp` and `sync` of the bytes that they write, by CPU; and two workers beside one."""

from __future__ import annotations

import os
import resource
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

SHARDS = 8
OF_COPY = 0.7
OF_ONE_WORKER = 1.6
CACHE = "read before, synced at the end"


def measure(corpora: Corpora) -> list[Result]:
    data = corpora.token_files()
    folder = corpora.folder / "imported"
    shutil.rmtree(folder, ignore_errors=True)
    kinds = {"Megatron's documents": data / "megatron", "a bare .npy": data / "bare.npy"}
    try:
        results = beside_copy(kinds, folder, corpora.size.repeats)
        results += workers(kinds["Megatron's documents"], folder, corpora)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return results


def beside_copy(kinds: dict[str, Path], folder: Path, repeats: int) -> list[Result]:
    """CPU seconds, user's and the kernel's, all in turn: what the kernel takes for new pages varies by the minute."""
    folder.mkdir(parents=True)
    runs, sizes = [], []
    for number, path in enumerate(kinds.values()):
        make, made = partial(penstock.import_tokens, path), folder / f"made-{number}"
        make(made)
        sizes.append(sum(each.stat().st_size for each in made.rglob("*") if each.is_file()))
        runs += [partial(seconds, way, folder / "out", cpu) for way in (partial(copy, made), make)]
    taken = alternate(repeats, runs)
    shutil.rmtree(folder)
    results: list[Result] = []
    for what, size, copied, imported in zip(kinds, sizes, taken[::2], taken[1::2], strict=True):
        of_copy = f"cp and sync / import of {what}: CPU"
        results += [
            Result("token files", f"cp and sync of {what}: CPU", "s", copied, CACHE, size),
            Result("token files", f"penstock, import of {what}: CPU", "s", imported, CACHE, size),
            Result("token files", of_copy, "ratio", ratios(copied, imported), CACHE, size, at_least=OF_COPY),
        ]
    return results


def workers(path: Path, folder: Path, corpora: Corpora) -> list[Result]:
    """Seconds of eight shards."""
    size = corpora.size.written_bytes
    make = partial(penstock.import_tokens, path, shard_size=max(1, size // SHARDS))
    folder.mkdir(parents=True)
    runs = [
        partial(seconds, partial(make, workers=count), folder / "out", time.perf_counter)  # two are threads
        for count in (1, 2)
    ]
    one, two = alternate(corpora.size.repeats, runs)
    quotient = ratios(one, two)
    return [
        Result("token files", "penstock, import by 1 worker", "s", one, CACHE, size),
        Result("token files", "penstock, import by 2 workers", "s", two, CACHE, size),
        Result("token files", "1 worker / 2 workers", "ratio", quotient, CACHE, size, at_least=OF_ONE_WORKER),
    ]


def cpu() -> float:
    """Of this process and of those that it waited for."""
    found = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in found)


def seconds(way: Callable[[Path], Any], out: Path, clock: Callable[[], float]) -> float:
    """Removing what was written is not in it, nor what others have written."""
    os.sync()
    begin = clock()
    way(out)
    taken = clock() - begin
    shutil.rmtree(out)
    return taken


def copy(made: Path, out: Path) -> None:
    """Synced file by file, as a writer does it: `sync -f` would have a thread of the kernel do the work, uncounted."""
    subprocess.run(["cp", "-r", made, out], check=True)
    subprocess.run(["sync", *(each for each in out.rglob("*") if each.is_file())], check=True)
