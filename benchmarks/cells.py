"""Cells, warm: each form of batch, beside gather_loop.c, one thread that gathers the same records from memory."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import penstock
from penstock.cells import Csr, Dense, Ranked
from results import Result, SkippedError, alternate, installed, ratios, warm
from workloads import CELL_GENES, PREFETCH, Corpora

SOURCE = Path(__file__).with_name("gather_loop.c")
ROWS, QUICK_ROWS = (64, 4096), (16, 64)
FEW_GENES = 2000
LENGTH = 2048  # of sentences


def measure(corpora: Corpora) -> list[Result]:
    if not installed("torch"):
        raise SkippedError("torch is not installed")
    path = corpora.cells()
    dataset = penstock.open(str(path))
    warm(file for file in path.rglob("*") if file.is_file())
    random = np.random.default_rng(5)
    few = np.sort(random.choice(CELL_GENES, FEW_GENES, replace=False))
    medians = random.lognormal(0, 0.5, CELL_GENES)
    forms: dict[str, penstock.View] = {
        "Csr": dataset.cells(Csr(), genes=range(CELL_GENES)),
        f"Dense of {FEW_GENES:,} genes": dataset.cells(Dense(), genes=few),
        f"Ranked({LENGTH:,}, medians)": dataset.cells(Ranked(LENGTH, medians=medians)),
        "Binned": dataset.cells("binned"),
        "Csr, normalised, log1p": dataset.cells(Csr(), genes=range(CELL_GENES), normalize=1e4, log1p=True),
    }
    few_rows = {f"Dense of {CELL_GENES:,} genes": dataset.cells(Dense(), genes=range(CELL_GENES))}
    targets = {f"Dense of {FEW_GENES:,} genes": 0.6}
    with tempfile.TemporaryDirectory() as folder:
        program = compiled(Path(folder))
        stream, starts = parts_of(path, Path(folder))
        results = []
        sizes = QUICK_ROWS if corpora.quick else ROWS
        for rows in sizes:
            views = forms | (few_rows if rows == min(sizes) else {})
            seconds = corpora.size.seconds
            loop, mapped, *found = alternate(
                corpora.size.repeats,
                [
                    partial(gather_loop, program, stream, starts, rows, seconds),
                    partial(cells_per_second, views["Csr"], rows, seconds, reader="mmap"),
                    *(partial(cells_per_second, view, rows, seconds) for view in views.values()),
                ],
            )
            results.append(line(f"m = {rows:,}: compiled gather, 1 thread", "cells/s", loop))
            results.append(line(f"m = {rows:,}: Csr, reader=mmap", "cells/s", mapped))
            ratio = ratios(mapped, loop)
            results.append(line(f"m = {rows:,}: Csr, reader=mmap / compiled gather", "ratio", ratio, 0.9))
            csr = found[0]
            for name, speed in zip(views, found, strict=True):
                results.append(line(f"m = {rows:,}: {name}", "cells/s", speed))
                if speed is csr:
                    results.append(line(f"m = {rows:,}: Csr / compiled gather", "ratio", ratios(csr, loop), 0.9))
                else:
                    ratio = ratios(speed, csr)
                    results.append(line(f"m = {rows:,}: {name} / Csr", "ratio", ratio, targets.get(name)))
    return results


def line(what: str, unit: str, values: tuple[float, ...], at_least: float | None = None) -> Result:
    return Result("cells", what, unit, values, "warm", at_least=at_least)


def cells_per_second(view: penstock.View, rows: int, seconds: float, **options: Any) -> float:
    """Cells that next() gives in `seconds`, all of a batch's arrays taken, by a loader of its own after a warm-up."""
    options = {"threads": len(os.sched_getaffinity(0)), "prefetch": PREFETCH, "framework": "torch", **options}
    with penstock.Loader(view, batch_size=rows, rank=0, world_size=1, **options) as loader:
        for _ in range(PREFETCH + 2):
            look(next(loader))
        count = 0
        begin = now = time.perf_counter()
        while now - begin < seconds:
            look(next(loader))
            count += rows
            now = time.perf_counter()
    return count / (now - begin)


def look(batch: penstock.Batch) -> None:
    if "gene" in batch:
        assert batch.csr is not None
    for name in batch:
        assert batch[name] is not None


def compiled(folder: Path) -> Path:
    """gather_loop.c, compiled by $CC or cc, its loop made wide."""
    program = folder / "gather_loop"
    subprocess.run([os.environ.get("CC", "cc"), "-O3", str(SOURCE), "-o", str(program)], check=True)
    return program


def parts_of(path: Path, folder: Path) -> tuple[Path, Path]:
    """The records of a dataset of one shard, and a file of u64 that says where its cells begin."""
    (shard,) = sorted(each for each in path.iterdir() if each.is_dir())
    index = np.fromfile(shard / "metadata.index", "<u8").reshape(-1, 2)
    starts = folder / "starts.bin"
    np.ascontiguousarray(index[:, 0]).tofile(starts)
    return shard / "stream.bin", starts


def gather_loop(program: Path, stream: Path, starts: Path, rows: int, seconds: float) -> float:
    """Cells per second of the C loop."""
    arguments = [str(stream), str(starts), str(rows), str(PREFETCH + 2), str(seconds)]
    done = subprocess.run([str(program), *arguments], capture_output=True, text=True, check=True)
    said = json.loads(done.stdout)
    return float(said["cells"] / said["seconds"])
