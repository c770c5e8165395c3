"""A writer that is killed, whose disk is full or gives EIO, leaves no dataset or a whole one, and says so; see crash/.

Hundreds of writers, each killed at another of its system calls: some scenarios take over 5 seconds.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "faults"))

import writers
from injector import built


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = built(tmp_path_factory.mktemp("library"))
    if found is None:
        pytest.skip("no C compiler for the library")
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """In memory where that can be had: thousands of fsyncs of a disk say no more and take minutes."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else tmp_path) as path:
        yield Path(path)


#: What crash/driver.py does, and what shows that it did. `make faults` has those with features without them too.
SCENARIOS: dict[str, Callable[[dict[str, int]], bool]] = {
    "kill-whole+features": lambda said: said["calls"] > 120,
    "kill-shards+features": lambda said: said["calls"] > 130,
    "kill-replace+features": lambda said: said["calls"] > 150,
    "kill-replace-shards+features": lambda said: said["calls"] > 150,
    "kill-append": lambda said: said["calls"] > 50,
    "kill-shuffle": lambda said: said["calls"] > 100,
    "fail+features": lambda said: said["raised"] > said["calls"] / 2,
    "fail-replace+features": lambda said: said["raised"] > said["calls"] / 2,
    "fail-append": lambda said: said["raised"] > 10,
    "fail-shuffle": lambda said: said["raised"] > said["calls"] / 2 and said["kept"] > said["calls"] / 8,
    "short": lambda said: said["files"] > 10,
    "copies": lambda said: said["files"] == 4 * 9,
    "no-flock": lambda said: said["errors"] == 4,
    "random": lambda said: said["runs"] == 20,
}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_writer_leaves_no_dataset_or_a_whole_one(library: Path, folder: Path, scenario: str) -> None:
    said = writers.drive(library, "driver.py", scenario, folder)
    assert SCENARIOS[scenario](said), said


def test_combining_reflinks_what_cannot_be_linked(library: Path, tmp_path: Path) -> None:
    if writers.drive(library, "driver.py", "reflinks", tmp_path)["reflinks"] == 0:
        pytest.skip(f"the file system of {tmp_path} has no reflinks")


def test_a_disk_that_gives_eio_is_said_and_what_is_published(library: Path, tmp_path: Path) -> None:
    found: dict[str, Any] = writers.drive(library, "eio.py", tmp_path)
    failed = {name: each for name, each in found.items() if each["said"] and not name.startswith("published")}
    assert len(failed) > 15
    for name, each in failed.items():
        assert "Input/output error" in each["said"], (name, each)
        assert "another writer" not in each["said"] and "expected" not in each["said"], (name, each)
        assert "IoError" in each["said"] or each["said"].startswith("RuntimeError: 1: penstock: "), (name, each)
    for call in ("fstat", "fstatat", "flock", "create"):
        assert f"a shard, {call} of .partial-run" in failed
    published = {name: each for name, each in found.items() if name.startswith("published")}
    assert len(published) == 3
    for name, each in published.items():
        assert each["replaced"] and each["times"], (name, each)
        assert "the new dataset is published" in each["said"], (name, each)
        assert "nothing was published" not in each["said"] and "old dataset stays" not in each["said"], (name, each)
