"""Memory of an import: bounded whatever the size of an input, and however many there are."""

from __future__ import annotations

import json
import pickle
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _anndata_files import anndata, as_kind, make, make_counts, sparse, write
from penstock._data.anndata.limits import Limits
from penstock._from.cells import recipe
from penstock._make.shard_work import Make
from penstock._make.workers import WorkerPool

_MEASURE = """
import json, os, sys, threading
from pathlib import Path
import penstock
from penstock._from.cells import recipe
from penstock._data.anndata.limits import Limits

small, large, out, share, workers = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
recipe.LIMITS = Limits(values=Limits().values // share)

def processes(process):
    yield process
    for task in Path(f"/proc/{process}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield from processes(int(child))

def memory():  # of all processes together; what they share counts once
    total = 0
    for process in processes(os.getpid()):
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024

def peak(path, out):
    seen, ended = [0.0], threading.Event()
    def look():
        while not ended.wait(0.01):
            try:
                seen[0] = max(seen[0], memory())
            except OSError:  # one of them has ended
                pass
    thread = threading.Thread(target=look)
    thread.start()
    penstock.import_anndata(path, out, workers=workers)
    ended.set()
    thread.join()
    return seen[0]

if __name__ == "__main__":
    print(json.dumps({"base": peak(small, out + "-small"), "peak": peak(large, out)}))
"""


def write_large(path: Path, kind: str) -> Path:
    """A value in every place, of a dense matrix in every second one; integers of 8 bytes as indices."""
    values = np.resize(np.arange(1, 100, dtype="f4"), (8_000 if kind == "dense" else 3_000, 2_000))
    if kind == "dense":
        values[:, ::2] = 0
    made = as_kind(anndata.AnnData(sparse.csr_matrix(values)), kind)
    if kind != "dense":
        made.X.indices = made.X.indices.astype("i8")
    return write(made, path)


@pytest.mark.parametrize(("kind", "workers"), [("csr", 2), ("csc", 1), ("csc", 2), ("dense", 1)])
def test_memory_is_in_proportion_to_what_is_read_at_once(tmp_path: Path, kind: str, workers: int) -> None:
    """1 GiB with the limits that there are, a sixteenth of it with a sixteenth of them; a process of its own tells."""
    small = write(make(make_counts(3_000)), tmp_path / "small.h5ad")
    large = write_large(tmp_path / "large.h5ad", kind)
    (tmp_path / "measure.py").write_text(_MEASURE)
    command = [sys.executable, *(str(tmp_path / each) for each in ("measure.py", "small.h5ad", "large.h5ad", "d"))]
    told = subprocess.run([*command, "16", str(workers)], check=True, capture_output=True, text=True).stdout
    found = json.loads(told)
    processes = 1 if workers == 1 else 1 + workers
    assert found["peak"] - processes * found["base"] < 1024 / 16, found
    assert large.stat().st_size / (1 << 20) > 1024 / 16 - 3 and small.stat().st_size < 1 << 21


def test_hundreds_of_inputs_need_few_open_files(tmp_path: Path) -> None:
    paths = [write(make(make_counts(20), seed=seed), tmp_path / f"{seed}.h5ad") for seed in range(3)]
    many = [tmp_path / f"many-{at}.h5ad" for at in range(40)]
    for at, path in enumerate(many):
        shutil.copy(paths[at % 3], path)  # no links: HDF5 opens one file once
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    there = len(list(Path("/proc/self/fd").iterdir()))
    resource.setrlimit(resource.RLIMIT_NOFILE, (there + 30, limits[1]))  # of workers too
    try:
        done = penstock.import_anndata(many, tmp_path / "d", join="outer", workers=2)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert (done.cells, done.shards) == (40 * 20, 40)


def test_what_a_worker_gets_does_not_grow_with_the_inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recipe, "LIMITS", Limits(values=50_000, task_values=100_000))
    sent: list[int] = []
    plans: list[int] = []
    submit = WorkerPool.submit

    def note(self: WorkerPool, job: Any) -> None:
        if isinstance(job, Make):
            sent.append(len(pickle.dumps(job)))
            plans.append(Path(job.together[0].task.plan).stat().st_size)
        submit(self, job)

    monkeypatch.setattr(WorkerPool, "submit", note)
    made = [make(make_counts(100, 5_000), seed=seed, prefix="a long name of a gene ") for seed in range(4)]
    paths = [write(each[:, ::-1].copy() if at % 2 else each, tmp_path / f"{at}.h5ad") for at, each in enumerate(made)]
    for at in (2, 4):
        penstock.import_anndata(paths[:at], tmp_path / f"d{at}", join="outer", workers=2)
    assert max(sent) < 2_000
    assert max(plans) - min(plans) < 2_000  # of one list of genes, 5,000 names
    assert max(plans) < 300_000
