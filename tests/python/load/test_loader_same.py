"""The same batches, bit for bit, for any thread count, prefetch depth, process and framework."""

from __future__ import annotations

import multiprocessing
import os
from typing import Any

import penstock
import pytest
from _datasets import MODES, assert_all_same, snapshot


def batches_of(view: penstock.View, **options: Any) -> list[dict[str, Any]]:
    with penstock.Loader(view, **{"batch_size": 5, "seed": 4, "epochs": 2, "framework": "numpy", **options}) as loader:
        return [snapshot(batch) for batch in loader]


def in_a_process(pipe: Any, view: penstock.View, options: dict[str, Any]) -> None:
    pipe.send(batches_of(view, **options))


@pytest.mark.parametrize("mode", ["compact", "documents"])
def test_any_threads_with_many_rows(tmp_path, mode):
    """Batches of more rows than a thread takes at once, so that threads do share them."""
    view = MODES[mode](tmp_path)
    plain = batches_of(view, threads=1, prefetch=1, batch_size=301, epochs=100)
    for _ in range(3):
        assert_all_same(batches_of(view, threads=8, prefetch=9, batch_size=301, epochs=100), plain)


@pytest.mark.parametrize("reader", ["auto", "uring", "direct", "mmap"])
@pytest.mark.parametrize("mode", MODES)
def test_any_reader(tmp_path, mode, reader):
    view = MODES[mode](tmp_path)
    try:
        assert penstock.Loader(view, 1, reader=reader).reader
    except penstock.InvalidArgumentError as error:
        pytest.skip(str(error))  # io_uring is refused here
    expected = batches_of(view, reader="pread")
    _forget(tmp_path)
    assert_all_same(batches_of(view, reader=reader), expected)  # from the device
    assert_all_same(batches_of(view, reader=reader, threads=3), expected)


def _forget(folder):
    """Asks the kernel to drop the files' pages from its cache."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def test_a_loader_tells_how_it_reads(tmp_path):
    view = MODES["compact"](tmp_path)
    assert penstock.Loader(view, 4, reader="pread").reader == "pread"
    assert penstock.Loader(view, 4).reader in ("uring", "pread")


def test_spawned_processes(tmp_path):
    spawn = multiprocessing.get_context("spawn")
    view = MODES["compact"](tmp_path)
    started = []
    for rank in range(2):
        ours, theirs = spawn.Pipe()
        options = {"rank": rank, "world_size": 2, "batch_size": 2, "threads": 1 + rank}
        process = spawn.Process(target=in_a_process, args=(theirs, view, options))
        process.start()
        started.append((process, ours, options))
    for process, pipe, options in started:
        assert pipe.poll(60)
        assert_all_same(pipe.recv(), batches_of(view, **options))
        process.join(30)
        assert process.exitcode == 0
