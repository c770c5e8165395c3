"""A disk that gives EIO at a lock, a manifest or after the publishing: the cause is said, and what is published."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CRASH = Path(__file__).parents[1] / "crash"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler for the shim")
    folder = tmp_path_factory.mktemp("eio")
    library = folder / "eio.so"
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", CRASH / "eio.c", "-o", library, "-ldl"], check=True)
    run = subprocess.run(
        [sys.executable, CRASH / "eio.py", folder],
        env=dict(os.environ, LD_PRELOAD=str(library)),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    result: dict[str, Any] = json.loads(run.stdout)
    return result


def test_a_lock_or_a_manifest_that_cannot_be_read_is_no_other_writer(found: dict[str, Any]) -> None:
    failed = {name: each for name, each in found.items() if each["said"] and not name.startswith("published")}
    assert len(failed) > 15
    for name, each in failed.items():
        assert "Input/output error" in each["said"], (name, each)
        assert "another writer" not in each["said"] and "expected" not in each["said"], (name, each)
        assert "IoError" in each["said"] or each["said"].startswith("RuntimeError: 1: penstock: "), (name, each)
    for call in ("fstat", "fstatat", "flock", "openat"):
        assert f"a shard, {call} of .partial-run" in failed


def test_an_error_after_the_publishing_says_that_it_is_published(found: dict[str, Any]) -> None:
    published = {name: each for name, each in found.items() if name.startswith("published")}
    assert len(published) == 3
    for name, each in published.items():
        assert each["replaced"] and each["times"], (name, each)
        assert "the new dataset is published" in each["said"], (name, each)
        assert "nothing was published" not in each["said"] and "old dataset stays" not in each["said"], (name, each)
