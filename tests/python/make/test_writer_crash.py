"""A writer that is killed, or whose disk is full, leaves no dataset or a whole one; see crash/driver.py."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

CRASH = Path(__file__).parents[1] / "crash"


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler for the shim")
    library = tmp_path_factory.mktemp("shim") / "shim.so"
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", CRASH / "shim.c", "-o", library, "-ldl"], check=True)
    return library


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """In memory where that can be had: thousands of fsyncs of a disk say no more and take minutes."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    path = Path(tempfile.mkdtemp(prefix="penstock-crash-", dir=memory))
    yield path
    shutil.rmtree(path)


def drive(shim: Path, folder: Path, scenario: str) -> dict[str, int]:
    run = subprocess.run(
        [sys.executable, CRASH / "driver.py", scenario, folder],
        env=dict(os.environ, LD_PRELOAD=str(shim)),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    result: dict[str, int] = json.loads(run.stdout)
    return result


def test_killed_at_any_call_there_is_no_dataset_or_a_whole_one(shim: Path, folder: Path) -> None:
    assert drive(shim, folder, "kill-whole")["calls"] > 100


def test_killed_shard_writers_go_on_to_the_same_bytes(shim: Path, folder: Path) -> None:
    assert drive(shim, folder, "kill-shards")["calls"] > 100


@pytest.mark.parametrize("scenario", ["kill-replace", "kill-replace-shards"])
def test_killed_while_replacing_leaves_the_old_one_or_the_new_one(shim: Path, folder: Path, scenario: str) -> None:
    assert drive(shim, folder, scenario)["calls"] > 100


def test_killed_while_appending_leaves_the_old_one_or_the_longer_one_and_a_repeat_goes_on(
    shim: Path, folder: Path
) -> None:
    assert drive(shim, folder, "kill-append")["calls"] > 50


def test_a_failing_call_while_appending_leaves_the_old_one_or_the_longer_one(shim: Path, folder: Path) -> None:
    assert drive(shim, folder, "fail-append")["raised"] > 10


def test_a_failing_call_while_replacing_leaves_the_old_one_or_the_new_one(shim: Path, folder: Path) -> None:
    result = drive(shim, folder, "fail-replace")
    assert result["raised"] > result["calls"] / 2


def test_any_failing_call_is_a_clean_error_and_publishes_nothing(shim: Path, folder: Path) -> None:
    result = drive(shim, folder, "fail")
    assert result["raised"] > 2 * result["calls"]


@pytest.mark.parametrize("scenario", ["kill-whole", "kill-shards", "kill-replace", "kill-replace-shards"])
def test_killed_while_features_are_written_leaves_no_half_of_them(shim: Path, folder: Path, scenario: str) -> None:
    assert drive(shim, folder, f"{scenario}+features")["calls"] > 150


@pytest.mark.parametrize("scenario", ["fail", "fail-replace"])
def test_any_failing_call_of_features_is_a_clean_error(shim: Path, folder: Path, scenario: str) -> None:
    result = drive(shim, folder, f"{scenario}+features")
    assert result["raised"] > result["calls"] / 2


def test_what_combine_links_is_synced_too(shim: Path, folder: Path) -> None:
    assert drive(shim, folder, "links")["links"] > 10


def test_everything_is_synced_before_its_rename_and_the_rename_after(shim: Path, folder: Path) -> None:
    assert drive(shim, folder, "order")["renames"] == 4


def test_short_writes_and_signals_change_no_byte(shim: Path, folder: Path) -> None:
    drive(shim, folder, "short")


def test_combining_copies_what_cannot_be_linked(shim: Path, folder: Path) -> None:
    assert drive(shim, folder, "copies")["files"] == 4 * 9


def test_combining_reflinks_what_cannot_be_linked(shim: Path, tmp_path: Path) -> None:
    if drive(shim, tmp_path, "reflinks")["reflinks"] == 0:
        pytest.skip(f"the file system of {tmp_path} has no reflinks")


def test_a_file_system_without_flock_is_written_to(shim: Path, folder: Path) -> None:
    assert drive(shim, folder, "no-flock")["errors"] == 4


def test_three_writers_killed_at_random_times(shim: Path, folder: Path) -> None:
    assert drive(shim, folder, "random")["runs"] == 30


def test_a_shuffle_killed_at_any_call_goes_on_to_the_same_bytes(shim: Path, folder: Path) -> None:
    assert drive(shim, folder, "kill-shuffle")["calls"] > 100


def test_a_shuffle_that_fails_keeps_its_finished_shards_and_nothing_else(shim: Path, folder: Path) -> None:
    result = drive(shim, folder, "fail-shuffle")
    assert result["raised"] > result["calls"] and result["kept"] > result["calls"] / 4
