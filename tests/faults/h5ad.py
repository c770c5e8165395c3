"""Mutations of an .h5ad file, opened in place and imported: each is an error of penstock that names the file, or is
harmless, within bounds of time and memory. `make faults` runs many, tests/python/data/test_hdf5_faults.py some."""

from __future__ import annotations

import argparse
import json
import random
import resource
import shutil
import struct
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anndata
import numpy as np
import pandas
import penstock
import scipy.sparse as sparse

NUMBERS = [
    0,
    1,
    2,
    7,
    255,
    4096,
    65535,
    1 << 20,
    1 << 31,
    (1 << 32) - 1,
    1 << 40,
    1 << 56,
    (1 << 63) - 1,
    (1 << 64) - 1,
]
CELLS, GENES = 60, 24


def write(path: Path) -> None:
    counts = sparse.random(CELLS, GENES, 0.3, "csr", "f4", np.random.RandomState(0))
    counts.data = np.ceil(counts.data * 9)
    obs = pandas.DataFrame(
        {
            "plate": pandas.Categorical(["p1", "p2", "p3"] * 20),
            "score": np.arange(CELLS) / 7,
            "some": pandas.array([1, None, 3] * 20, dtype="Int64"),
            "line": [f"line {i % 5}" for i in range(CELLS)],
        },
        index=[f"cell {i}" for i in range(CELLS)],
    )
    var = pandas.DataFrame({"length": np.arange(GENES)}, index=[f"g{i}" for i in range(GENES)])
    made = anndata.AnnData(counts, obs=obs, var=var)
    made.obsm["X_pca"] = np.ones((CELLS, 3), "f4")
    made.write_h5ad(path)


def mutate(rng: random.Random, data: bytearray) -> str:
    """Changes some bytes; those of HDF5's own structures are all but a few of so small a file."""
    done = []
    for _ in range(rng.choice([1, 1, 1, 2, 4, 16])):
        at = rng.randrange(len(data))
        kind = rng.choice(["bit", "byte", "number", "number", "page", "copy", "cut"])
        if kind == "bit":
            data[at] ^= 1 << rng.randrange(8)
        elif kind == "byte":
            data[at] = rng.randrange(256)
        elif kind == "number":
            size = rng.choice([1, 2, 4, 8])
            at = at // size * size
            data[at : at + size] = struct.pack("<Q", rng.choice(NUMBERS))[:size]
        elif kind == "page":
            data[at : at + 512] = bytes(len(data[at : at + 512]))
        elif kind == "copy":
            other = rng.randrange(len(data))
            some = bytes(data[other : other + 64])
            data[at : at + len(some)] = some
        elif rng.random() < 0.3:
            del data[max(at, 8) :]
        done.append(f"{kind} at {at}")
    return ", ".join(done)


def open_in_place(path: Path, out: Path) -> None:
    dataset = penstock.open(path, format="h5ad")
    view = dataset.cells(columns=list(dataset.columns))
    view.read(np.arange(min(len(view), 64)))
    assert dataset.features is not None
    [dataset.features.columns[name][:] for name in dataset.features.columns]


def import_it(path: Path, out: Path) -> None:
    penstock.import_anndata(path, out, obsm=["X_pca"], overwrite=True)


def trial(call: Callable[[Path, Path], None], path: Path, out: Path) -> tuple[str, str]:
    """(what became of it, in words)."""
    try:
        call(path, out)
    except penstock.Error as error:
        named = path.name in str(error) and len(str(error)) < 1000
        return ("found" if named else "stray"), str(error)
    except Exception as error:
        return "stray", f"{type(error).__name__}: {error}"
    finally:
        shutil.rmtree(out, ignore_errors=True)
    return "harmless", ""


def run(trials: int, first: int = 0) -> dict[str, Any]:
    counts: Counter[str] = Counter()
    bad: list[dict[str, Any]] = []
    slowest = 0.0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cells.h5ad"
        write(path)
        whole = path.read_bytes()
        for call in (open_in_place, import_it):
            assert trial(call, path, Path(folder) / "out")[0] == "harmless"
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for seed in range(first, first + trials):
            data = bytearray(whole)
            what = mutate(random.Random(seed), data)
            path.unlink()
            path.write_bytes(data)
            call = import_it if seed % 4 == 0 else open_in_place
            begin = time.perf_counter()
            outcome, words = trial(call, path, Path(folder) / "out")
            seconds = time.perf_counter() - begin
            slowest = max(slowest, seconds)
            counts[outcome] += 1
            if outcome == "stray" or seconds > 60:
                bad.append({"seed": seed, "what": what, "how": call.__name__, "seconds": seconds, "words": words[:300]})
    own = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10
    child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
    found = {"trials": trials, **counts, "memory_mib": own, "child_mib": child}
    return {**found, "slowest_s": round(slowest, 2), "bad": bad}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    said = run(given.trials, given.first)
    print(json.dumps(said, indent=1))
    raise SystemExit(1 if said["bad"] else 0)
