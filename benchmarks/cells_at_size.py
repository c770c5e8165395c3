"""Cells at size: import, opening, epochs, `suggest` and queries of millions of generated cells in 20 .h5ad files.

    python benchmarks/cells_at_size.py --cells 3000000 --json build/cells_at_size.json      # 33 GB of disk, 20 minutes

30,000 genes, 900 values a cell on average (3 %): popular genes are in most cells, rare ones in few, and a cell's depth
varies. X is float32 with int32 genes, not compressed. Each figure is a process of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import h5py
import numpy as np
import pandas
from anndata.io import write_elem
from import_cells import resident
from record import replace_file
from results import Result, machine, number, versions

GENES, SHARE, FILES, POOL = 30_000, 0.03, 20, 20_000
NAME = "cells-at-size"


class Pool:
    """Rows that cells are drawn from: what each holds is realistic, and making millions stays cheap."""

    def __init__(self, cells: int) -> None:
        random = np.random.default_rng(0)
        popularity = random.lognormal(0, 1.8, GENES)
        depths = np.exp(random.normal(0, 0.35, cells))
        chance = popularity / popularity.mean() * SHARE
        scale = 1.0
        for _ in range(60):  # until chances, none above 0.98, have the wanted mean
            scale *= SHARE / np.minimum(chance * scale, 0.98).mean()
        parts = []
        for first in range(0, cells, 500):
            limits = np.minimum(np.outer(depths[first : first + 500], chance * scale), 0.98).astype(np.float32)
            parts.append(np.nonzero(random.random(limits.shape, np.float32) < limits))
        rows = [np.bincount(part[0], minlength=min(500, cells - 500 * k)) for k, part in enumerate(parts)]
        self.lengths = np.concatenate(rows)
        self.genes = np.concatenate([part[1] for part in parts]).astype(np.int32)
        self.counts = random.geometric(0.55, len(self.genes)).astype(np.float32)
        self.starts = np.concatenate([[0], np.cumsum(self.lengths)])


def write_file(path: Path, cells: int, pool: Pool, seed: int) -> int:
    """Writes one .h5ad file; the number of its values."""
    random = np.random.default_rng(seed)
    drawn = random.integers(0, len(pool.lengths), cells)
    lengths = pool.lengths[drawn]
    with h5py.File(path, "w") as file:
        file.attrs.update({"encoding-type": "anndata", "encoding-version": "0.1.0"})
        x = file.create_group("X")
        x.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": [cells, GENES]})
        total = int(lengths.sum())
        data = x.create_dataset("data", (total,), "f4", chunks=(1 << 17,))
        indices = x.create_dataset("indices", (total,), "i4", chunks=(1 << 17,))
        x["indptr"] = np.concatenate([[0], np.cumsum(lengths)])
        at = 0
        for first in range(0, cells, 2_000):
            part = drawn[first : first + 2_000]
            count = lengths[first : first + 2_000]
            firsts = np.repeat(pool.starts[part] - np.concatenate([[0], np.cumsum(count)[:-1]]), count)
            places = firsts + np.arange(len(firsts))
            indices[at : at + len(places)], data[at : at + len(places)] = pool.genes[places], pool.counts[places]
            at += len(places)
        obs = {
            "donor": pandas.Categorical.from_codes(random.integers(0, 40, cells), [f"donor {k}" for k in range(40)]),
            "cell_type": pandas.Categorical.from_codes(random.integers(0, 60, cells), [f"type {k}" for k in range(60)]),
            "n_genes": lengths.astype(np.int32),
            "score": random.random(cells, np.float32),
        }
        write_elem(file, "obs", pandas.DataFrame(obs, index=[f"{seed}-{k}" for k in range(cells)]))
        write_elem(file, "var", pandas.DataFrame(index=[f"gene {k}" for k in range(GENES)]))
    return total


def write_files(folder: Path, cells: int) -> list[Path]:
    """The files, made where they are not there; a file is there when it is whole."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{k:02}.h5ad" for k in range(FILES)]
    if not all(path.exists() for path in paths):
        pool = Pool(min(POOL, cells))
        for k, path in enumerate(paths):
            partial = path.with_suffix(".part")
            write_file(partial, cells // FILES, pool, k)
            partial.rename(path)
            print(f"wrote {path.name}", file=sys.stderr, flush=True)
    return paths


def largest_process(process: int) -> float:
    """MB that the largest of a process and its children holds."""
    found = 0.0
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{process}/task").iterdir():
            children = (task / "children").read_text().split()
            found = max([found, *(largest_process(int(child)) for child in children)])
        lines = (Path(f"/proc/{process}") / "status").read_text().splitlines()
        found = max([found, *(int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon"))])
    return found


def command(arguments: list[object]) -> tuple[float, float, float]:
    """Seconds of a command of penstock, MB of its largest process, which mapped files are not in, and of all."""
    begin, most, together = time.perf_counter(), 0.0, 0.0
    process = subprocess.Popen([sys.executable, "-m", "penstock", *map(str, arguments)], stdout=subprocess.DEVNULL)
    while process.poll() is None:
        most, together = max(most, largest_process(process.pid)), max(together, resident(process.pid))
        time.sleep(0.05)
    assert process.returncode == 0, arguments
    return time.perf_counter() - begin, most, together


def child(script: str, *arguments: object) -> dict[str, float]:
    """What a script of another process prints, a line of JSON."""
    said = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)], check=True, stdout=subprocess.PIPE, text=True
    )
    found: dict[str, float] = json.loads(said.stdout.splitlines()[-1])
    return found


OPENING = """
import json, sys, time
import penstock
penstock.Dataset
begin = time.perf_counter()
dataset = penstock.open(*sys.argv[1:])
opened = time.perf_counter()
view = dataset.cells("csr")
batch = next(iter(penstock.Loader(view, 64, framework="numpy")))
print(json.dumps({"open": opened - begin, "batch": time.perf_counter() - opened}))
"""
EPOCH = """
import json, sys, time
import penstock
from penstock.cells import Ranked

def resident():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon"))

form, *paths = sys.argv[1:]
view = penstock.open(*paths).cells(Ranked(2048) if form == "ranked" else "csr", columns=["cell_type"])
loader = penstock.Loader(view, 256, epochs=1, framework="numpy", tail="drop")
cells, begin, memory = 0, time.perf_counter(), []
for step, batch in enumerate(loader):
    assert batch["input_ids" if form == "ranked" else "gene"] is not None
    cells += len(batch.indices)
    if step % (len(loader) // 10) == 0:
        memory.append(resident())
print(json.dumps({"cells": cells, "seconds": time.perf_counter() - begin, "second": memory[1], "last": memory[-1]}))
"""
SUGGEST = """
import json, sys, time
import anndata, penstock
store = anndata.read_h5ad(sys.argv[1], backed="r")
begin = time.perf_counter()
penstock.suggest(store, batch_size=256, seconds=10)
print(json.dumps({"seconds": time.perf_counter() - begin}))
"""
QUERY = "select cell_type, donor, count(*), avg(n_genes) where score > 0.5 group by all order by 3 desc"


def imports(paths: list[Path], out: Path, repeats: int) -> list[Result]:
    """Two workers beside one; the dataset stays."""
    found: dict[int, list[tuple[float, float, float]]] = {1: [], 2: []}
    for _ in range(repeats):
        for workers, those in found.items():
            shutil.rmtree(out, ignore_errors=True)
            those.append(command(["import", *paths, "--out", out, "--workers", workers]))
            print(f"import, {workers} workers: {those[-1][0]:.0f} s", file=sys.stderr, flush=True)
    one, two = ([each[0] for each in found[workers]] for workers in (1, 2))
    largest = tuple(each[1] / 1.048576 for each in found[2])
    return [
        Result(NAME, "import, one worker", "s", tuple(one), "warm"),
        Result(NAME, "import, two workers", "s", tuple(two), "warm"),
        Result(
            NAME,
            "one worker / two",
            "ratio",
            tuple(a / b for a, b in zip(one, two, strict=True)),
            "warm",
            at_least=1.6,
        ),
        Result(NAME, "import, the largest process of two workers", "MiB", largest, "warm", at_most=1024),
    ]


def readings(paths: list[Path], out: Path, repeats: int) -> list[Result]:
    """Opening, epochs, suggest, a query."""
    results = []
    for what, place, limit in (("imported", [out], 50.0), (f"{len(paths)} .h5ad in place", paths, 1000.0)):
        found = [child(OPENING, *place) for _ in range(repeats)]
        opened = tuple(each["open"] * 1000 for each in found)
        results.append(Result(NAME, f"opening, {what}", "ms", opened, "warm", at_most=limit))
        results.append(
            Result(NAME, f"first batch, {what}", "ms", tuple(each["batch"] * 1000 for each in found), "warm")
        )
    for form in ("csr", "ranked"):
        for what, place in (("imported", [out]), ("in place", paths)):
            said = child(EPOCH, form, *place)
            speed = (said["cells"] / said["seconds"],)
            results.append(Result(NAME, f"an epoch as {form}, {what}", "cells/s", speed, "as found"))
            growth = (said["last"] - said["second"],)
            results.append(
                Result(
                    NAME,
                    f"{form}, {what}: memory after it, beside a tenth of it",
                    "MiB more",
                    growth,
                    "as found",
                    at_most=8,
                )
            )
            print(f"{form}, {what}: {speed[0]:,.0f} cells/s", file=sys.stderr, flush=True)
    results.append(Result(NAME, "suggest of one file, seconds=10", "s", (child(SUGGEST, paths[0])["seconds"],), "warm"))
    asked = tuple(command(["query", out, QUERY])[0] for _ in range(repeats))
    results.append(Result(NAME, "penstock query, half of all cells in groups", "s", asked, "warm"))
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=3_000_000)
    parser.add_argument("--dir", type=Path, default=Path("build/cells"))
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    paths = write_files(given.dir / f"h5ad-{given.cells}", given.cells)
    out = given.dir / f"imported-{given.cells}"
    results = imports(paths, out, given.repeats) + readings(paths, out, max(3, given.repeats))
    replace_file(given.json, json.dumps([vars(each) for each in results], indent=1))
    print(f"{machine()}. {versions()}. {given.cells:,} cells.\n\n| figure | median | spread | target |")
    print("| --- | --- | --- | --- |")
    for each in results:
        spread = f"{number(min(each.values))} – {number(max(each.values))}"
        print(f"| {each.what} | {number(each.median)} {each.unit} | {spread} | {each.target} |")


if __name__ == "__main__":
    main()
