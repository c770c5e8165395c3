"""Damaged .h5ad files: one error of penstock that names the file, within bounds of time and memory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from penstock._anndata import hdf5

h5py = pytest.importorskip("h5py")
pytest.importorskip("anndata")
sys.path.insert(0, str(Path(__file__).parents[1] / "faults"))

import h5ad  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


def test_mutations_are_found_or_harmless() -> None:
    command = [sys.executable, "-W", "ignore", h5ad.__file__, "--trials", "80"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    said = json.loads(done.stdout)
    assert said["bad"] == []
    assert said["found"] > 20
    assert said["memory_mib"] < 300
    assert said["child_mib"] < 1100  # its bound is 768 MiB beside Python, NumPy and h5py


@pytest.fixture
def path(tmp_path: Path) -> Path:
    h5ad.write(tmp_path / "cells.h5ad")
    return tmp_path / "cells.h5ad"


def claim(path: Path, member: str, **options: Any) -> None:
    """An array that says that it has a tebi of values, none of which is written."""
    with h5py.File(path, "r+") as file:
        attributes, dtype = dict(file[member].attrs), file[member].dtype
        del file[member]
        file.create_dataset(member, (1 << 40,), dtype, **options).attrs.update(attributes)


@pytest.mark.parametrize("member", ["X/indptr", "obs/_index", "obs/score", "obs/plate/categories", "var/_index"])
@pytest.mark.parametrize("options", [{}, {"chunks": (1 << 16,), "compression": "gzip"}], ids=["whole", "chunks"])
def test_what_an_array_says_takes_no_memory(path: Path, tmp_path: Path, member: str, options: Any) -> None:
    claim(path, member, **options)
    for call in (penstock.open, lambda each: penstock.import_anndata(each, tmp_path / "out")):
        with pytest.raises(penstock.Error, match=r"cells\.h5ad"):
            call(path)


def test_a_file_that_ends_its_reader_is_told_and_others_are_read(path: Path, tmp_path: Path) -> None:
    with hdf5.session() as helper:
        os.kill(helper._process.pid, signal.SIGXCPU)
        with pytest.raises(penstock.CorruptionError, match=r"cells\.h5ad cannot be read: HDF5 comes to no end with it"):
            hdf5.File(helper, str(path))
    with hdf5.session() as helper:
        os.kill(helper._process.pid, signal.SIGSEGV)
        with pytest.raises(penstock.CorruptionError, match=r"cells\.h5ad cannot be read: HDF5 ended with SIGSEGV"):
            hdf5.File(helper, str(path))
    assert len(penstock.open(path).cells()) == h5ad.CELLS


def test_a_refused_file_is_closed(path: Path, tmp_path: Path) -> None:
    for call in (lambda: penstock.open(path), lambda: penstock.import_anndata(path, tmp_path / "out", obs=["none"])):
        with h5py.File(path, "r+") as file:  # which HDF5 locks
            file["X"].attrs["encoding-type"] = "csc_matrix"
        with pytest.raises(penstock.InvalidArgumentError):
            call()
        with h5py.File(path, "r+") as file:
            file["X"].attrs["encoding-type"] = "csr_matrix"


def test_one_process_serves_all_files_and_the_next_opening(path: Path) -> None:
    penstock.open(path)
    first = hdf5._IDLE[0]
    dataset = penstock.open(*[path] * 20)
    assert [first] == hdf5._IDLE and first.is_alive()
    assert len(dataset.cells()) == 20 * h5ad.CELLS
    np.testing.assert_array_equal(dataset.features.columns["length"][:], np.arange(h5ad.GENES))  # type: ignore[union-attr]


def test_no_reader_of_hdf5_outlives_its_process(path: Path) -> None:
    program = f"""
import os, penstock
from penstock._anndata import hdf5
penstock.open({str(path)!r})
print(hdf5._IDLE[0]._process.pid, flush=True)
os.kill(os.getpid(), 9)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    pid = int(done.stdout)
    deadline = time.monotonic() + 10
    while Path(f"/proc/{pid}").exists() and "Z" not in Path(f"/proc/{pid}/stat").read_text().split()[2]:
        assert time.monotonic() < deadline
        time.sleep(0.05)
