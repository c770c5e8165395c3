"""Import and export of generated cells: seconds, and the resident memory of all processes together.

    python benchmarks/import_cells.py --cells 50000 --workers 2 --kind csr

Generated like Tahoe-100M: 62,710 genes, about 1,755 values a cell, float32 + int32, not compressed. The file is in the
page cache when it is read.
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import anndata
import h5py
import numpy as np
import pandas
from anndata.io import write_elem

GENES, MEAN = 62_710, 1_755


def write_cells(path: Path, cells: int) -> int:
    """Writes an .h5ad file of compressed rows, few cells at a time; the number of values."""
    random = np.random.default_rng(0)
    counts = np.clip(random.lognormal(np.log(MEAN) - 0.06, 0.35, cells), 300, 5_000).astype(int)
    with h5py.File(path, "w") as file:
        file.attrs.update({"encoding-type": "anndata", "encoding-version": "0.1.0"})
        x = file.create_group("X")
        x.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": [cells, GENES]})
        data, indices = (x.create_dataset(name, (counts.sum(),), of, chunks=True) for name, of in
                         (("data", "f4"), ("indices", "i4")))  # fmt: skip
        x["indptr"] = np.concatenate([[0], np.cumsum(counts)])
        at = 0
        for first in range(0, cells, 500):
            part = counts[first : first + 500]
            end = at + int(part.sum())
            genes = [np.sort(random.choice(GENES, count, replace=False, shuffle=False)) for count in part]
            indices[at:end], data[at:end] = np.concatenate(genes), random.geometric(0.6, end - at)
            at = end
        drugs = pandas.Categorical(random.choice([f"drug {k}" for k in range(379)], cells))
        write_elem(file, "obs", pandas.DataFrame({"drug": drugs}, index=[f"cell {k}" for k in range(cells)]))
        write_elem(file, "var", pandas.DataFrame(index=[f"gene {k}" for k in range(GENES)]))
    return at


def resident(process: int) -> float:
    """MB of a process and its children."""
    total = 0.0
    with contextlib.suppress(OSError):
        folder = Path(f"/proc/{process}")
        lines = (folder / "status").read_text().splitlines()
        total += sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024
        for task in (folder / "task").iterdir():
            total += sum(resident(int(child)) for child in (task / "children").read_text().split())
    return total


def measure(*arguments: object) -> tuple[float, float]:
    """Seconds, and the most MB, of a command of penstock."""
    begin, most = time.perf_counter(), 0.0
    process = subprocess.Popen([sys.executable, "-m", "penstock", *map(str, arguments)], stdout=subprocess.DEVNULL)
    while process.poll() is None:
        most = max(most, resident(process.pid))
        time.sleep(0.05)
    assert process.returncode == 0
    return time.perf_counter() - begin, most


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=50_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--kind", choices=["csr", "csc"], default="csr")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cells.h5ad"
        values = write_cells(path, given.cells)
        if given.kind == "csc":
            made = anndata.read_h5ad(path)
            made.X = made.X.tocsc()
            path = path.with_name("csc.h5ad")
            made.write_h5ad(path, compression="gzip", compression_opts=1)
        print(f"{given.cells:,} cells, {values:,} values, {given.kind}")
        steps = {
            "import": ("import", path, "--out", f"{folder}/d", "--workers", given.workers),
            "export": ("export", f"{folder}/d", "--to", "h5ad", "--out", f"{folder}/back.h5ad"),
        }
        for name, arguments in steps.items():
            seconds, most = measure(*arguments)
            print(f"{name}: {seconds:.1f} s, {given.cells / seconds:,.0f} cells/s, {most:,.0f} MB")


if __name__ == "__main__":
    main()
