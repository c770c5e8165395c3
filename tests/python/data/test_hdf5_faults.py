"""Damaged .h5ad files: one error of penstock that names the file, within bounds of time and memory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _refused import refused
from penstock._data.anndata import hdf5

h5py = pytest.importorskip("h5py")
pytest.importorskip("anndata")
sys.path.insert(0, str(Path(__file__).parents[2] / "faults"))

import h5ad  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


def test_mutations_are_found_or_harmless() -> None:
    """Takes seconds: files are damaged and read one after the other. `make faults` tries many more."""
    command = [sys.executable, "-W", "ignore", h5ad.__file__, "--trials", "20"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    said = json.loads(done.stdout)
    assert said["bad"] == []
    assert said["found"] > 4
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
def test_what_an_array_says_takes_no_memory(path: Path, tmp_path: Path, member: str) -> None:
    for options in ({}, {"chunks": (1 << 16,), "compression": "gzip"}):
        claim(path, member, **options)
        for call in (penstock.open, lambda each: penstock.import_anndata(each, tmp_path / "out")):
            refused(r"cells\.h5ad", call, path, error=penstock.Error)


def test_a_file_that_ends_its_reader_is_told_and_others_are_read(path: Path) -> None:
    for number, words in (
        (signal.SIGXCPU, "HDF5 comes to no end with it"),
        (signal.SIGSEGV, "HDF5 ended with SIGSEGV"),
    ):
        with hdf5.session() as helper:
            os.kill(helper._process.pid, number)
            with pytest.raises(penstock.CorruptionError, match=rf"cells\.h5ad cannot be read: {words}"):
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
    assert len(penstock.open(*[path] * 20).cells()) == 20 * h5ad.CELLS
    assert [first] == hdf5._IDLE and first.is_alive()


def test_no_reader_of_hdf5_outlives_its_process_or_says_anything_at_its_exit(path: Path) -> None:
    program = f"""
import os, penstock, sys
from penstock._data.anndata import hdf5
penstock.open({str(path)!r})
print(hdf5._IDLE[0]._process.pid, flush=True)
if os.fork():
    os.wait()
    os.kill(os.getpid(), int(sys.argv[1])) if len(sys.argv) > 1 else None
"""
    for kill in ([], ["9"]):
        command = [sys.executable, "-W", "default::ResourceWarning", "-c", program, *kill]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        wait_for_end(int(done.stdout.split()[0]))
        assert done.returncode == (-9 if kill else 0)
        assert "still running" not in done.stderr and "unclosed" not in done.stderr


def wait_for_end(pid: int) -> None:
    deadline = time.monotonic() + 10
    while Path(f"/proc/{pid}").exists() and "Z" not in Path(f"/proc/{pid}/stat").read_text().split()[2]:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def store_elsewhere(file: Any, member: str, pipe: Path) -> None:
    array = file[member]
    size, options = array.shape[0] * array.dtype.itemsize, {"external": [(os.fsencode(pipe), 0, 1 << 20)]}
    assert size <= 1 << 20
    shape, dtype = array.shape, array.dtype
    del file[member]
    file.create_dataset(member, shape, dtype, **options)


def see_elsewhere(file: Any, member: str, pipe: Path) -> None:
    layout = h5py.VirtualLayout(file[member].shape, file[member].dtype)
    layout[:] = h5py.VirtualSource(os.fspath(pipe), "values", file[member].shape)
    del file[member]
    file.create_virtual_dataset(member, layout)


def link_elsewhere(file: Any, member: str, pipe: Path) -> None:
    del file[member]
    file[member] = h5py.ExternalLink(os.fspath(pipe), "values")


def link_twice(file: Any, member: str, pipe: Path) -> None:
    del file[member]
    file["beyond"] = h5py.ExternalLink(os.fspath(pipe), "/")
    file[member] = h5py.SoftLink("/beyond/values")


@pytest.mark.parametrize(
    ("lead", "member"),
    [
        *((lead, "X/indptr") for lead in (store_elsewhere, see_elsewhere, link_elsewhere, link_twice)),
        *((link_elsewhere, member) for member in ("X/data", "obs/score", "var/length")),
        (store_elsewhere, "X/data"),
        (see_elsewhere, "obs/score"),
    ],
)
def test_what_lies_in_another_file_is_refused_at_once(path: Path, tmp_path: Path, lead: Any, member: str) -> None:
    os.mkfifo(tmp_path / "pipe")  # to open which takes for ever
    with h5py.File(path, "r+") as file:
        lead(file, member, tmp_path / "pipe")
    begin = time.monotonic()
    words = rf"cells\.h5ad: {member} .* another file, '.*pipe"
    with pytest.raises(penstock.InvalidArgumentError, match=words):
        _ = penstock.open(path).features.columns  # type: ignore[union-attr]
    refused(words, penstock.import_anndata, path, tmp_path / "out")
    assert time.monotonic() - begin < 20


def test_links_and_views_inside_of_a_file_are_followed(path: Path) -> None:
    expected = penstock.open(path).cells()[3]
    with h5py.File(path, "r+") as file:
        file.move("X/indptr", "starts")
        file["place"] = h5py.SoftLink("/starts")
        file["X/indptr"] = h5py.SoftLink("/place")
        file.move("obs/score", "score")
        layout = h5py.VirtualLayout(file["score"].shape, file["score"].dtype)
        layout[:] = h5py.VirtualSource(".", "score", file["score"].shape)
        file.create_virtual_dataset("obs/score", layout).attrs.update(dict(file["score"].attrs))
    found = penstock.open(path).cells()[3]
    for name in ("gene", "count"):
        np.testing.assert_array_equal(found[name], expected[name])
    with h5py.File(path, "r+") as file:
        del file["X/indptr"]
        file["X/indptr"] = h5py.SoftLink("/X/indptr")
    refused(r"cells\.h5ad: X/indptr cannot be read: .*links", penstock.open, path, error=penstock.CorruptionError)


def test_a_pipe_is_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "cells.h5ad"
    os.mkfifo(pipe)
    for use in (penstock.open, lambda each: penstock.import_anndata(each, tmp_path / "out")):
        refused(r"cells\.h5ad: .* not a regular file but a pipe or dev", use, pipe)


def test_no_answer_is_an_error_that_names_the_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    penstock.open(path)
    helper = hdf5._IDLE[0]
    monkeypatch.setattr(hdf5, "_ANSWER_S", -2.0)  # and 4 for its processor
    os.kill(helper._process.pid, signal.SIGSTOP)
    with pytest.raises(penstock.IoError, match=r"cells\.h5ad cannot be read: no answer within 2 s") as raised:
        penstock.open(path)
    assert raised.value.filename == str(path)
    assert helper._process.returncode == -signal.SIGKILL
    monkeypatch.undo()
    assert len(penstock.open(path).cells()) == h5ad.CELLS


BLOCKED = """
import os, penstock, sys, threading, time
from penstock._data.anndata import hdf5, stores
stores._refuse_other = lambda path: None
def opened():
    penstock.open(sys.argv[1])
threading.Thread(target=opened, daemon=True).start()
while not hdf5._ALL:
    time.sleep(0.01)
print(next(iter(hdf5._ALL))._process.pid, flush=True)
if sys.argv[2] == "fork" and os.fork() == 0:
    time.sleep(60)
sys.stdin.read()
"""


@pytest.mark.parametrize("how", ["alone", "fork"])
def test_a_reader_that_waits_does_not_outlive_its_process(tmp_path: Path, how: str) -> None:
    """Nor where a forked process, such as a worker of torch's, goes on."""
    pipe = tmp_path / "cells.h5ad"
    os.mkfifo(pipe)
    command = [sys.executable, "-c", BLOCKED, pipe, how]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        try:
            deadline = time.monotonic() + 30
            while "/h5py/" not in Path(f"/proc/{child}/maps").read_text():
                assert time.monotonic() < deadline
                time.sleep(0.05)
            time.sleep(0.5)  # in which it has begun to open the pipe
            parent.kill()
            parent.wait()
            wait_for_end(child)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(parent.pid, signal.SIGKILL)
