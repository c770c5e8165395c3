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
    results: list[Result] = []
    try:
        for what, path in kinds.items():
            results += beside_copy(what, partial(penstock.import_tokens, path), folder, corpora.size.repeats)
        results += workers(kinds["Megatron's documents"], folder, corpora)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return results


def beside_copy(what: str, make: Callable[[Path], Any], folder: Path, repeats: int) -> list[Result]:
    """CPU seconds, user's and the kernel's, in turn."""
    made = folder / "made"
    folder.mkdir(parents=True)
    make(made)
    size = sum(each.stat().st_size for each in made.rglob("*") if each.is_file())
    runs = [partial(seconds, way, folder / "out", cpu) for way in (partial(copy, made), make)]
    copied, imported = alternate(repeats, runs)
    shutil.rmtree(folder)
    quotient = ratios(copied, imported)
    return [
        Result("token files", f"cp and sync of {what}: CPU", "s", copied, CACHE, size),
        Result("token files", f"penstock, import of {what}: CPU", "s", imported, CACHE, size),
        Result("token files", f"cp and sync / import of {what}: CPU", "ratio", quotient, CACHE, size, at_least=OF_COPY),
    ]


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
