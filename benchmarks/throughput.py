"""Warm throughput beside pread_loop.c: as many threads, as many buffers of the same size, the same file, in turn."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import penstock
from results import Result, alternate, ratios, warm
from workloads import BATCH, PAIR, PREFETCH, TOKEN_BYTES, WINDOW, Corpora

SOURCE = Path(__file__).with_name("pread_loop.c")
WARM_UP_BATCHES = 64


def measure(corpora: Corpora) -> list[Result]:
    cores = len(os.sched_getaffinity(0))
    path = corpora.tokens()
    warm([path])
    with tempfile.TemporaryDirectory() as folder:
        program = compiled(Path(folder))
        results = []
        for threads in sorted({1, cores}):
            results += records(corpora, program, path, threads)
        return results + metadata(corpora, cores)


def records(corpora: Corpora, program: Path, path: Path, threads: int) -> list[Result]:
    """Windows of records of 4 and of 8 bytes against the loop: as read and as int64 tensors, by read and by mapping."""
    results = []
    seconds = corpora.size.seconds
    for record_bytes, dtype in ((TOKEN_BYTES, "u4"), (8, PAIR)):
        view = penstock.open(str(path), dtype=dtype).windows(WINDOW)
        size = WINDOW * record_bytes
        kinds = [(framework, reader) for reader in ("auto", "mmap") for framework in ("numpy", "torch")]
        limit, *found = alternate(
            corpora.size.repeats,
            [
                partial(pread_loop, program, path, size, threads, seconds),
                *(partial(windows_per_second, view, kind, threads, seconds, reader=reader) for kind, reader in kinds),
            ],
        )
        what = f"records of {record_bytes} B, {threads} thread{'s' if threads > 1 else ''}"
        results.append(line(f"{what}: C loop of pread", "windows/s", limit, size))
        for (framework, reader), speed in zip(kinds, found, strict=True):
            given = "as read" if framework == "numpy" else "int64"
            given += "" if reader == "auto" else f", reader={reader}"
            target = 0.8 if framework == "numpy" else None
            results += [
                line(f"{what}: penstock, {given} ({framework})", "windows/s", speed, size),
                line(f"{what}: {given} / C loop", "ratio", ratios(speed, limit), size, at_least=target),
            ]
    return results


def metadata(corpora: Corpora, threads: int) -> list[Result]:
    """Windows of the same stream with all metadata that belongs to them, and without."""
    path = corpora.documents()
    streams = sorted(path.glob("*/stream.bin"))
    warm(file for file in path.rglob("*") if file.is_file())
    views = [penstock.open(str(path)).windows(WINDOW), penstock.open(*map(str, streams), dtype="u4").windows(WINDOW)]
    found = alternate(
        corpora.size.repeats,
        [partial(windows_per_second, view, "numpy", threads, corpora.size.seconds) for view in views],
    )
    what = f"documents of 800 tokens, entries of 160 B, {threads} threads"
    size = WINDOW * TOKEN_BYTES
    return [
        line(f"{what}: with metadata", "windows/s", found[0], size),
        line(f"{what}: without", "windows/s", found[1], size),
        line(f"{what}: with / without", "ratio", ratios(*found), size, at_least=0.7),
    ]


def line(what: str, unit: str, values: tuple[float, ...], size: int, at_least: float | None = None) -> Result:
    return Result("throughput", what, unit, values, "warm", size, at_least=at_least)


def windows_per_second(
    view: penstock.View, framework: str, threads: int, seconds: float, seed: int = 0, reader: str = "auto"
) -> float:
    """Windows that next() gives in `seconds`, by a loader of its own after some batches to warm up.

    With the framework numpy records are given as read; with torch as int64 tensors, cast by the native threads.
    """
    options: dict[str, Any] = {"threads": threads, "prefetch": PREFETCH, "framework": framework, "seed": seed}
    options["reader"] = reader
    with penstock.Loader(view, batch_size=BATCH, rank=0, world_size=1, **options) as loader:
        for _ in itertools.islice(loader, WARM_UP_BATCHES):
            pass
        batches = 0
        begin = now = time.perf_counter()
        while now - begin < seconds:
            next(loader)
            batches += 1
            now = time.perf_counter()
    return batches * BATCH / (now - begin)


def compiled(folder: Path) -> Path:
    """pread_loop.c, compiled by $CC or cc."""
    program = folder / "pread_loop"
    subprocess.run([os.environ.get("CC", "cc"), "-O2", "-pthread", str(SOURCE), "-o", str(program)], check=True)
    return program


def pread_loop(program: Path, file: Path, window_bytes: int, threads: int, seconds: float) -> float:
    """Windows per second of the C loop."""
    arguments = [str(file), str(window_bytes), str(BATCH), str(PREFETCH + 2), str(threads), str(seconds)]
    done = subprocess.run([str(program), *arguments], capture_output=True, text=True, check=True)
    said = json.loads(done.stdout)
    return float(said["windows"] / said["seconds"])
