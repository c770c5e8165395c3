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

anndata = pytest.importorskip("anndata")
h5py = pytest.importorskip("h5py")
pandas = pytest.importorskip("pandas")
sparse = pytest.importorskip("scipy.sparse")
pytest.importorskip("msgpack")

from _anndata_files import files_of, make, make_counts, write  # noqa: E402
from penstock._data.anndata.limits import Limits  # noqa: E402
from penstock._from.cells import recipe  # noqa: E402
from penstock._make.shard_work import Make  # noqa: E402
from penstock._make.workers import WorkerPool  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.*names are not unique.*")

_MEASURE = """
import json, os, sys, threading, time
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
        try:
            lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
            total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
        except (OSError, ValueError):
            pass
    return total / 1024

def peak(path, out):
    seen, ended = [0.0], threading.Event()
    def look():
        while not ended.wait(0.01):
            try:
                seen[0] = max(seen[0], memory())
            except OSError:
                pass
    thread = threading.Thread(target=look)
    thread.start()
    begin = time.monotonic()
    penstock.import_anndata(path, out, workers=workers)
    ended.set()
    thread.join()
    return seen[0], time.monotonic() - begin

if __name__ == "__main__":
    base, _ = peak(small, out + "-small")
    most, seconds = peak(large, out)
    print(json.dumps({"base": base, "peak": most, "seconds": seconds}))
"""


def write_matrix(path: Path, kind: str, cells: int, genes: int) -> Path:
    """A matrix of a value in every place, few at a time; integers of 8 bytes as indices."""
    with h5py.File(path, "w") as file:
        file.attrs.update({"encoding-type": "anndata", "encoding-version": "0.1.0"})
        lines, length = (cells, genes) if kind == "csr" else (genes, cells)
        if kind == "dense":
            x = file.create_dataset("X", (cells, genes), "f4")
            x.attrs.update({"encoding-type": "array", "encoding-version": "0.2.0"})
            for at in range(0, cells, 1_000):
                x[at : at + 1_000] = np.arange(genes) % 2
        else:
            x = file.create_group("X")
            x.attrs.update({"encoding-type": f"{kind}_matrix", "encoding-version": "0.1.0", "shape": [cells, genes]})
            x["indptr"] = np.arange(lines + 1) * length
            data = x.create_dataset("data", (lines * length,), "f4")
            indices = x.create_dataset("indices", (lines * length,), "i8")
            some = max(1, (1 << 20) // length)
            for at in range(0, lines, some):
                count = min(some, lines - at)
                data[at * length : (at + count) * length] = np.resize(np.arange(1, 100, dtype="f4"), count * length)
                indices[at * length : (at + count) * length] = np.tile(np.arange(length), count)
        for name, count in (("obs", cells), ("var", genes)):
            group = file.create_group(name)
            group.attrs.update({"encoding-type": "dataframe", "encoding-version": "0.2.0", "_index": "_index"})
            group.attrs.create("column-order", np.array([], object), dtype=h5py.string_dtype())
            group["_index"] = [f"{name} {i}" for i in range(count)]
    return path


def measure(tmp_path: Path, large: Path, share: int, workers: int) -> Any:
    small = write(make(make_counts(3_000)), tmp_path / "small.h5ad")
    (tmp_path / "measure.py").write_text(_MEASURE)
    command = [sys.executable, str(tmp_path / "measure.py"), str(small), str(large), str(tmp_path / "d"), str(share)]
    told = subprocess.run([*command, str(workers)], check=True, capture_output=True, text=True).stdout
    return json.loads(told)


def test_columns_of_more_than_the_promised_memory_are_turned_in_it(tmp_path: Path) -> None:
    large = write_matrix(tmp_path / "large.h5ad", "csc", 50_000, 2_000)
    assert large.stat().st_size > 1 << 30  # as rows, with a gene and a value each, it were 1.5 times that
    found = measure(tmp_path, large, 1, workers=2)
    assert found["peak"] < 1024, found
    assert penstock.open(tmp_path / "d").records == 100_000_000


@pytest.mark.parametrize("kind", ["csr", "csc", "dense"])
@pytest.mark.parametrize("workers", [1, 2])
def test_memory_is_in_proportion_to_what_is_read_at_once(tmp_path: Path, kind: str, workers: int) -> None:
    large = write_matrix(tmp_path / "large.h5ad", kind, 8_000, 2_000)
    found = measure(tmp_path, large, 16, workers)
    processes = 1 if workers == 1 else 1 + workers
    assert found["peak"] - processes * found["base"] < 1024 / 16, found
    assert large.stat().st_size / (1 << 20) > 1024 / 16 - 3


def test_hundreds_of_inputs_need_few_open_files(tmp_path: Path) -> None:
    paths = [write(make(make_counts(20), seed=seed), tmp_path / f"{seed}.h5ad") for seed in range(3)]
    many = [tmp_path / f"many-{at}.h5ad" for at in range(60)]
    for at, path in enumerate(many):
        shutil.copy(paths[at % 3], path)  # no links: HDF5 opens one file once
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    there = len(list(Path("/proc/self/fd").iterdir()))
    for workers in (1, 2):
        resource.setrlimit(resource.RLIMIT_NOFILE, (there + 30, limits[1]))
        try:
            done = penstock.import_anndata(many, tmp_path / f"d{workers}", join="outer", workers=workers)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        assert (done.cells, done.shards) == (60 * 20, 60)
    assert files_of(tmp_path / "d1") == files_of(tmp_path / "d2")


def test_what_a_worker_gets_does_not_grow_with_the_inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recipe, "LIMITS", Limits(values=50_000, task_values=100_000))
    sent: list[tuple[str, int]] = []
    plans: list[int] = []
    submit = WorkerPool.submit

    def note(self: WorkerPool, job: Any) -> None:
        sent.append((type(job).__name__, len(pickle.dumps(job))))
        if isinstance(job, Make):
            plans.append(Path(job.together[0].task.plan).stat().st_size)
        submit(self, job)

    monkeypatch.setattr(WorkerPool, "submit", note)
    made = [make(make_counts(400, 5_000), seed=seed, prefix="a long name of a gene ") for seed in range(4)]
    paths = [write(each[:, ::-1].copy() if at % 2 else each, tmp_path / f"{at}.h5ad") for at, each in enumerate(made)]
    for at in (2, 4):
        penstock.import_anndata(paths[:at], tmp_path / f"d{at}", join="outer", workers=2)
    assert max(size for name, size in sent if name == "Make") < 2_000
    assert max(plans) - min(plans) < 2_000  # of one list of genes, 5,000 names
    assert max(plans) < 300_000
